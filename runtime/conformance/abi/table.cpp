#include <gpunn/error.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "conformance/abi/abi_checks.hpp"

namespace gpunn::conformance {

void demand(bool holds, const std::string& message) {
  if (!holds) throw Error(message);
}

namespace {

bool is_name(std::string_view name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

void check_names(const RawChain& chain) {
  const gpunn_plugin& table = chain.top().table();
  demand(table.name != nullptr && is_name(table.name),
         "expected a name of [a-z0-9_], found '" + std::string(table.name == nullptr ? "NULL" : table.name) + "'");
  demand(table.version != nullptr && *table.version != '\0', "expected a version, found none");
  demand(table.build != nullptr, "expected a build text, found NULL; an empty one is fine");
  demand(table.base == nullptr || is_name(table.base),
         "expected a base of [a-z0-9_], found '" + std::string(table.base == nullptr ? "" : table.base) + "'");
  demand(table.abi_major == GPUNN_ABI_MAJOR, "expected ABI major version " + std::to_string(GPUNN_ABI_MAJOR) +
                                                 ", found " + std::to_string(table.abi_major));
}

void check_functions(const RawChain& chain) {
  const gpunn_plugin& t = chain.top().table();
  const auto present = [](auto function, const char* name) {
    demand(function != nullptr, std::string(name) + " is NULL, but it is required");
  };
  present(t.probe, "probe");
  present(t.device_open, "device_open");
  present(t.device_close, "device_close");
  present(t.device_info, "device_info");
  present(t.memory_alloc, "memory_alloc");
  present(t.memory_free, "memory_free");
  present(t.copy, "copy");
  present(t.fill, "fill");
  present(t.stream_create, "stream_create");
  present(t.stream_wrap, "stream_wrap");
  present(t.stream_native, "stream_native");
  present(t.stream_sync, "stream_sync");
  present(t.stream_destroy, "stream_destroy");
  present(t.event_create, "event_create");
  present(t.event_record, "event_record");
  present(t.event_wait, "event_wait");
  present(t.event_sync, "event_sync");
  present(t.event_elapsed, "event_elapsed");
  present(t.event_destroy, "event_destroy");
  present(t.op_query, "op_query");
  present(t.op_create, "op_create");
  present(t.op_enqueue, "op_enqueue");
  present(t.op_free, "op_free");
  present(t.shutdown, "shutdown");
  const int capture = (t.capture_begin != nullptr) + (t.capture_end != nullptr) + (t.graph_launch != nullptr) +
                      (t.graph_free != nullptr);
  demand(capture == 0 || capture == 4,
         "expected all four functions of graph capture or none, found " + std::to_string(capture));
}

void check_probe(const RawChain& chain) {
  int32_t first = -1, second = -1;
  const RawDevice& device = chain.top();
  device.call("probe", [&](gpunn_error* error) { return device.table().probe(&first, error); });
  device.call("probe", [&](gpunn_error* error) { return device.table().probe(&second, error); });
  demand(first > 0, "expected at least one device, or GPUNN_NO_DEVICE; found " + std::to_string(first));
  demand(first == second,
         "two probes counted " + std::to_string(first) + " and " + std::to_string(second) + " devices");
}

void check_index(const RawChain& chain) {
  const RawDevice& device = chain.top();
  gpunn_device_options options{};
  options.struct_size = sizeof(options);
  for (const int32_t index : {-1, 1 << 20}) {
    options.index = index;
    gpunn_device* opened = nullptr;
    const plugins::CallResult result =
        plugins::guarded([&](gpunn_error* error) { return device.table().device_open(&options, &opened, error); });
    if (result.ok() && opened != nullptr) device.table().device_close(opened);
    demand(!result.ok(), "device_open of device " + std::to_string(index) + " said OK; expected a failure");
  }
}

// Each that probe counted, not only the first.
void check_every_index(const RawChain& chain) {
  const RawDevice& device = chain.top();
  int32_t count = 0;
  device.call("probe", [&](gpunn_error* error) { return device.table().probe(&count, error); });
  gpunn_device_options options{};
  options.struct_size = sizeof(options);
  for (options.index = 0; options.index < count; ++options.index) {
    gpunn_device* opened = nullptr;
    device.call("device_open of device " + std::to_string(options.index) + " of " + std::to_string(count),
                [&](gpunn_error* error) { return device.table().device_open(&options, &opened, error); });
    demand(opened != nullptr, "device_open of device " + std::to_string(options.index) + " said OK and gave none");
    device.table().device_close(opened);
  }
}

template <std::size_t N>
void check_text(const char (&text)[N], const char* what, bool may_be_empty) {
  demand(std::memchr(text, '\0', N) != nullptr, std::string(what) + " has no NUL at its end");
  demand(may_be_empty || text[0] != '\0', std::string(what) + " is empty");
}

void check_info(const RawChain& chain) {
  const gpunn_device_info info = chain.top().info();
  check_text(info.name, "the device's name", false);
  check_text(info.driver, "the driver's text", true);
  check_text(info.memory_domain, "the memory domain", false);
  const std::string_view domain = info.memory_domain;
  demand(domain == "host" || domain.find(':') != std::string_view::npos,
         "expected the memory domain 'host' or 'kind:identity', found '" + std::string(domain) + "'");
  demand(std::has_single_bit(info.alignment) && info.alignment <= 1 << 20,
         "expected an alignment that is a power of two, found " + std::to_string(info.alignment));
  demand(info.compute_units > 0, "expected at least one compute unit, found " + std::to_string(info.compute_units));
  demand(info.free_bytes <= info.total_bytes || info.total_bytes == 0,
         "more free bytes (" + std::to_string(info.free_bytes) + ") than bytes (" + std::to_string(info.total_bytes) +
             ")");
}

// A host that was built with a shorter gpunn_device_info must get no byte more than it knows.
void check_short_info(const RawChain& chain) {
  const RawDevice& device = chain.top();
  gpunn_device_info info;
  std::memset(&info, 0x5A, sizeof(info));
  info.struct_size = offsetof(gpunn_device_info, memory_domain);
  device.call("device_info",
              [&](gpunn_error* error) { return device.table().device_info(device.device(), &info, error); });
  const auto* bytes = reinterpret_cast<const unsigned char*>(&info);
  for (std::size_t i = offsetof(gpunn_device_info, memory_domain); i < sizeof(info); ++i) {
    demand(bytes[i] == 0x5A, "device_info wrote byte " + std::to_string(i) + " of a struct of " +
                                 std::to_string(offsetof(gpunn_device_info, memory_domain)) + " bytes");
  }
}

// The error text must fit in what the caller gave.
void check_short_error(const RawChain& chain) {
  const RawDevice& device = chain.top();
  gpunn_device_options options{};
  options.struct_size = sizeof(options);
  options.index = -1;
  gpunn_error error;
  std::memset(&error, 0x5A, sizeof(error));
  error.struct_size = offsetof(gpunn_error, message) + 8;
  gpunn_device* opened = nullptr;
  const gpunn_status status = device.table().device_open(&options, &opened, &error);
  if (status == GPUNN_OK) {  // another check's subject
    if (opened != nullptr) device.table().device_close(opened);
    return;
  }
  demand(std::memchr(error.message, '\0', 8) != nullptr, "an error text without NUL at its end");
  for (std::size_t i = 8; i < sizeof(error.message); ++i) {
    demand(error.message[i] == 0x5A, "the error text went beyond the caller's struct_size");
  }
}

}  // namespace

std::vector<AbiCheck> table_checks() {
  return {{"name", "names and versions", check_names},
          {"table", "required functions", check_functions},
          {"probe", "counts devices, twice the same", check_probe},
          {"device_open", "opens every device that probe counts", check_every_index},
          {"device_open", "refuses a device that there is not", check_index},
          {"device_open", "keeps an error within struct_size", check_short_error},
          {"device_info", "fields make sense", check_info},
          {"device_info", "writes no more than struct_size", check_short_info}};
}

}  // namespace gpunn::conformance
