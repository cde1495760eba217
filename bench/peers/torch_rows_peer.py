"""Rows by id in PyTorch on gloo, with a process for each rank: a table of f32 that is cut by rows,
gathered and updated by three calls of all_to_all_single(), of counts, ids and rows, with
index_select(), index_add_() and index_copy_() at the owners. Each call makes its result.

Table, ids and rows are those of `tessera bench rows`.

https://docs.pytorch.org/docs/stable/distributed.html
"""
import math

import torch
import torch.distributed as dist

import gloo
import peer

LISTS = 16  # of ids, which take turns
WORD = (1 << 64) - 1


def draws(state):
    """The draws of tools/bench/rows/rows_bench.c."""
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & WORD
        yield state >> 20


def draw_list(case, rank, number):
    rows, drawn = case["rows"], draws((rank * LISTS + number) * 0x9E3779B97F4A7C15 + 1 & WORD)

    def zipf(value):
        reached = math.exp((value % (1 << 24)) / (1 << 24) * math.log(rows + 1)) - 1
        return min(int(reached), rows - 1) * 2654435761 % rows

    ids = []
    for i in range(case["ids"]):
        if i > 0:
            next(drawn)  # which says there whether the id is a duplicate
        ids.append(zipf(next(drawn)) if case["skew"] == "zipf" else next(drawn) % rows)
    return torch.tensor(ids)


def value(rows):
    """The value of all elements of rows of the table."""
    return (rows % 1000).float()


class Table:
    """This rank's part of a table."""

    def __init__(self, case):
        self.ranks = dist.get_world_size()
        self.each = -(-case["rows"] // self.ranks)
        self.first = dist.get_rank() * self.each
        self.numbers = torch.arange(self.first, max(self.first, min(self.first + self.each, case["rows"])))
        self.rows = torch.empty(len(self.numbers), case["columns"])
        self.fill()

    def fill(self):
        self.rows.copy_(value(self.numbers)[:, None].expand_as(self.rows))

    def exchange(self, ids):
        """Tells owners which rows are meant. Returns the order of the ids by owner, how many go to
        and come from each rank, and this rank's rows that others mean."""
        owners = ids // self.each
        order = torch.argsort(owners, stable=True)
        counts = torch.bincount(owners, minlength=self.ranks)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        sends, receives = counts.tolist(), theirs.tolist()
        meant = torch.empty(sum(receives), dtype=torch.int64)
        dist.all_to_all_single(meant, ids[order], receives, sends)
        return order, sends, receives, meant - self.first

    def gather(self, ids):
        order, sends, receives, meant = self.exchange(ids)
        found = torch.empty(len(ids), self.rows.shape[1])
        dist.all_to_all_single(found, self.rows.index_select(0, meant), sends, receives)
        return torch.empty_like(found).index_copy_(0, order, found)

    def update(self, ids, brought, op):
        order, sends, receives, meant = self.exchange(ids)
        found = torch.empty(len(meant), self.rows.shape[1])
        dist.all_to_all_single(found, brought[order], receives, sends)
        (self.rows.index_add_ if op == "add" else self.rows.index_copy_)(0, meant, found)


def brought_value(rank):
    return 1 + rank % 7


def wanted_rows(case, table):
    """The values of the table's rows after an update with the first list of each rank."""
    wanted = value(torch.arange(case["rows"]))
    for rank in range(table.ranks):
        ids = draw_list(case, rank, 0)
        if case["op"] == "add":
            wanted += brought_value(rank) * torch.bincount(ids, minlength=case["rows"])
        else:
            wanted[ids] = float(brought_value(rank))
    return wanted[table.numbers]


def total(wrong):
    found = torch.tensor(int(wrong))
    dist.all_reduce(found)
    return found.item()


def answer(case):
    table, rank = Table(case), dist.get_rank()
    lists = [draw_list(case, rank, number) for number in range(LISTS)]
    brought = torch.full((case["ids"], case["columns"]), float(brought_value(rank)))

    def call(ids):
        return table.gather(ids) if case["op"] == "gather" else table.update(ids, brought, case["op"])

    seconds = peer.measure(call, case["samples"], sources=lambda calls: [lists[i % LISTS] for i in range(calls)], together=dist.barrier,
                           slowest=gloo.most)
    table.fill()
    found = call(lists[0])
    found, wanted = (found, value(lists[0])) if case["op"] == "gather" else (table.rows, wanted_rows(case, table))
    return {"seconds": seconds, "wrong": total((found != wanted[:, None]).sum())}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    peer.serve(answer, speaks=dist.get_rank() == 0)
    dist.destroy_process_group()


main()
