// A transformer's MLP, y = down (up x), on four devices: `up` is cut by its rows, `down` by its columns, and y is all-reduced.
module @mlp {
  sdy.mesh @mesh = <["tp"=4]>
  func.func public @main(%x: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
                         %up: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>},
                         %down: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>})
      -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %y = sdy.manual_computation(%x, %up, %down)
        in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"tp"}, {}]>, <@mesh, [{}, {"tp"}]>]
        out_shardings=[<@mesh, [{}, {}]>] manual_axes={"tp"}
        (%local_x: tensor<2x4xf32>, %local_up: tensor<2x4xf32>, %local_down: tensor<4x2xf32>) {
      %h = stablehlo.custom_call @tsr_xla_linear_column(%local_x, %local_up) {
        api_version = 4 : i32, backend_config = {mesh = "tp=4"}
      } : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
      %local_y = stablehlo.custom_call @tsr_xla_linear_row(%h, %local_down) {
        api_version = 4 : i32, backend_config = {mesh = "tp=4"}
      } : (tensor<2x2xf32>, tensor<4x2xf32>) -> tensor<2x4xf32>
      sdy.return %local_y : tensor<2x4xf32>
    } : (tensor<2x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
}
