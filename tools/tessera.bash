# bash completion for tessera

_tessera_values() {
    case "$1" in
    --dtype) echo f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool c64 c128 ;;
    --mode) echo direct message ;;
    --engine) echo threads mpi nccl ;;
    --device) echo host cuda ;;
    --kernel) echo copy reduce reduce-to-all ;;
    --objective) echo bytes time ;;
    --placements | --from | --to) echo R P 'S\(0\)' 'S\(1\)' ;;
    esac
}

_tessera_options() {
    case "$1" in
    info) echo --json ;;
    layout) echo --mesh --shape --placements --dtype --json ;;
    plan)
        echo --mesh --to-mesh --shape --from --to --dtype --mode --objective --max-workspace --ranks-per-node --nodes --rank --profile --relabel \
            --save --svg --json
        ;;
    redistribute) echo --mesh --shape --from --to --dtype --input --input-shards --output --mode --engine --device --json ;;
    "bench redistribute")
        echo --mesh --shape --begin --end --factor --from --to --dtype --iterations --warm-up --calls --check --mode --engine --device --json --csv
        ;;
    "bench dispatch")
        echo --mesh --shape --begin --end --factor --from --to --dtype --iterations --warm-up --calls --new-result --check --mode --engine --device \
            --json --csv
        ;;
    "bench linear")
        echo --mesh --dtype --weights --tokens --hidden --intermediate --iterations --warm-up --calls --check --engine --device --json --csv
        ;;
    "bench kernels")
        echo --kernel --run-bytes --ranks --begin --end --factor --iterations --warm-up --calls --svg --json --csv
        ;;
    "bench product") echo --shape --dtype --ranks --iterations --warm-up --calls --check --json --csv ;;
    "bench suite") echo --ranks --quick --iterations --warm-up --check --engine --device --json --csv ;;
    "bench plan")
        echo --mesh --shape --begin --end --factor --from --to --dtype --mode --objective --max-workspace --ranks-per-node --nodes --rank --sweep \
            --iterations --warm-up --json --csv
        ;;
    "bench compare") echo --loss --json ;;
    "bench simulate")
        echo --mesh --shape --from --to --dtype --mode --objective --max-workspace --ranks-per-node --links --profile --sweep --validate --engine \
            --device --svg --json --csv
        ;;
    "bench calibrate")
        echo --ranks --dtype --begin --end --factor --iterations --warm-up --calls --check --mode --engine --device --profile --output --json --csv
        ;;
    esac
    echo --help
}

_tessera() {
    local current=$2 previous=$3 command=${COMP_WORDS[1]}
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "info layout plan redistribute bench --help --version" -- "$current")
        return
    fi
    if [[ $command == bench ]]; then
        if [[ $COMP_CWORD -eq 2 ]]; then
            mapfile -t COMPREPLY < <(compgen -W "redistribute linear product dispatch kernels calibrate plan compare simulate suite --help" -- "$current")
            return
        fi
        command="bench ${COMP_WORDS[2]}"
    fi
    case "$command $previous" in
    *" --input" | *" --profile" | *" --save" | *" --svg" | "bench calibrate --output") mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    *" --input-shards" | *" --output") mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    *" --dtype" | *" --mode" | *" --kernel" | *" --objective" | *" --engine" | *" --device" | *" --placements" | *" --from" | *" --to")
        mapfile -t COMPREPLY < <(compgen -W "$(_tessera_values "$previous")" -- "$current")
        ;;
    *" --mesh" | *" --to-mesh" | *" --shape" | *" --tokens" | *" --hidden" | *" --intermediate" | *" --iterations" | *" --ranks") ;;
    *" --run-bytes" | *" --begin" | *" --end" | *" --factor" | *" --warm-up" | *" --calls" | *" --check") ;;
    *" --max-workspace" | *" --ranks-per-node" | *" --nodes" | *" --rank" | *" --loss" | *" --links") ;;
    "bench compare "*)
        if [[ $current == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_tessera_options "$command")" -- "$current")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
        ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$(_tessera_options "$command")" -- "$current") ;;
    esac
}

complete -o filenames -F _tessera tessera
