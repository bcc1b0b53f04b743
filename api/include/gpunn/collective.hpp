// C++ wrappers over collective.h: a backend whose device moves data between ranks.
//
//   class MyDevice : public Device {
//     std::unique_ptr<Communicator> create_communicator(const CommunicatorOptions& options);
//   };
//   const void* MyBackend::extension(const char* name) {
//     return std::strcmp(name, GPUNN_EXTENSION_COLLECTIVE) == 0 ? collective_extension<MyDevice>() : nullptr;
//   }
#pragma once

#include <gpunn/collective.h>
#include <gpunn/plugin.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gpunn::plugin {

// The ranks of a communicator, while it is created; of an extension of rank_subgraph.h, until the device leaves them.
class CommunicatorOptions {
 public:
  explicit CommunicatorOptions(const gpunn_communicator_options& options) : options_(options) {}
  int rank() const { return options_.rank; }
  int world() const { return options_.world; }
  bool on_one_machine() const { return options_.local_world == options_.world; }
  bool can_exchange() const { return options_.exchange != nullptr; }

  // The value of each rank.
  template <class T>
  std::vector<T> exchange(const T& mine) const {
    std::vector<T> all(static_cast<std::size_t>(world()));
    if (options_.exchange(options_.context, &mine, sizeof(T), all.data()) != GPUNN_OK) {
      throw Failure(GPUNN_INTERNAL, "the ranks can't exchange data");
    }
    return all;
  }

 private:
  gpunn_communicator_options options_;
};

// The answer of Communicator::query.
struct CollectiveSupport {
  bool served = false;
  uint32_t flags = 0;
  std::string reason = {};
  static CollectiveSupport yes(uint32_t flags) { return {.served = true, .flags = flags}; }
  static CollectiveSupport no(std::string reason) { return {.reason = std::move(reason)}; }
};

// A group of ranks that exchange tensors. All ranks enqueue the same exchanges in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual CollectiveSupport query(const gpunn_collective_desc& desc) = 0;
  virtual void enqueue(Stream& stream, const gpunn_collective_desc& desc, const void* in, void* out) = 0;
  virtual void abort() noexcept = 0;  // from any thread
};

namespace detail {

template <class D>
struct __attribute__((visibility("hidden"))) CollectiveTable {
  static Communicator& of(gpunn_communicator* handle) { return *reinterpret_cast<Communicator*>(handle); }

  static gpunn_status create(gpunn_device* handle, const gpunn_communicator_options* options, gpunn_communicator** out,
                             gpunn_error* error) noexcept {
    return guard(error, [&] {
      const CommunicatorOptions known(read_struct<gpunn_communicator_options>(options));
      *out =
          reinterpret_cast<gpunn_communicator*>(static_cast<D&>(device(handle)).create_communicator(known).release());
    });
  }
  static gpunn_status query(gpunn_communicator* handle, const gpunn_collective_desc* desc,
                            gpunn_collective_support* out, gpunn_error* error) noexcept {
    return guard(error, [&] {
      const CollectiveSupport support = of(handle).query(read_struct<gpunn_collective_desc>(desc));
      gpunn_collective_support value{};
      value.score = support.served ? 1 : 0;
      value.flags = support.flags;
      copy_text(value.reason, sizeof(value.reason), support.reason);
      write_struct(value, out);
    });
  }
  static gpunn_status enqueue(gpunn_communicator* handle, gpunn_stream* on, const gpunn_collective_desc* desc,
                              const void* in, void* out, gpunn_error* error) noexcept {
    return guard(error, [&] { of(handle).enqueue(stream(on), read_struct<gpunn_collective_desc>(desc), in, out); });
  }
  static void abort(gpunn_communicator* handle) noexcept { of(handle).abort(); }
  static void destroy(gpunn_communicator* handle) noexcept { delete &of(handle); }
};

}  // namespace detail

// Backend::extension(GPUNN_EXTENSION_COLLECTIVE) returns this if every device that the backend opens is a D.
template <class D>
[[gnu::visibility("hidden")]] const gpunn_collective_extension* collective_extension() noexcept {
  using T = detail::CollectiveTable<D>;
  static const gpunn_collective_extension table = {.struct_size = sizeof(gpunn_collective_extension),
                                                   .reserved = 0,
                                                   .create = T::create,
                                                   .query = T::query,
                                                   .enqueue = T::enqueue,
                                                   .abort = T::abort,
                                                   .destroy = T::destroy};
  return &table;
}

}  // namespace gpunn::plugin
