// C++ wrappers over rank_subgraph.h: a backend whose fused subgraphs exchange data between ranks.
//
//   class MyDevice : public Device {
//     void join_ranks(const CommunicatorOptions& options);
//     void abort_ranks() noexcept;  // from any thread
//     void leave_ranks() noexcept;
//   };
//   const void* MyBackend::extension(const char* name) {
//     return std::strcmp(name, GPUNN_EXTENSION_RANK_SUBGRAPH) == 0 ? rank_subgraph_extension<MyDevice>() : nullptr;
//   }
#pragma once

#include <gpunn/collective.hpp>
#include <gpunn/plugin.hpp>
#include <gpunn/rank_subgraph.h>

namespace gpunn::plugin {

namespace detail {

template <class D>
struct __attribute__((visibility("hidden"))) RankSubgraphTable {
  static D& device_of(gpunn_device* handle) { return static_cast<D&>(device(handle)); }

  static gpunn_status join(gpunn_device* handle, const gpunn_communicator_options* options,
                           gpunn_error* error) noexcept {
    return guard(error, [&] {
      device_of(handle).join_ranks(CommunicatorOptions(read_struct<gpunn_communicator_options>(options)));
    });
  }
  static void abort(gpunn_device* handle) noexcept { device_of(handle).abort_ranks(); }
  static void leave(gpunn_device* handle) noexcept { device_of(handle).leave_ranks(); }
};

}  // namespace detail

// Backend::extension(GPUNN_EXTENSION_RANK_SUBGRAPH) returns this if every device that the backend opens is a D.
template <class D>
[[gnu::visibility("hidden")]] const gpunn_rank_subgraph_extension* rank_subgraph_extension() noexcept {
  using T = detail::RankSubgraphTable<D>;
  static const gpunn_rank_subgraph_extension table = {.struct_size = sizeof(gpunn_rank_subgraph_extension),
                                                      .reserved = 0,
                                                      .join = T::join,
                                                      .abort = T::abort,
                                                      .leave = T::leave};
  return &table;
}

}  // namespace gpunn::plugin
