#include "plugins/negotiation.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <utility>

namespace gpunn::plugins {

namespace {

constexpr std::size_t kRequiredBytes = offsetof(gpunn_plugin, capture_begin);
constexpr std::size_t kAbsurdBytes = 65536;
constexpr std::size_t kNameLimit = 64;
constexpr int kLargestMajor = 32;

std::string mismatch(const std::string& of_plugin) {
  return "plugin speaks " + of_plugin + ", host speaks " + std::to_string(GPUNN_ABI_MAJOR) +
         "; build it again against the headers of this gpunn";
}

std::string version(int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); }

void fail(Negotiated& result, PluginStatus status, std::string detail) {
  result.status = status;
  result.detail = std::move(detail);
}

// Empty: the name is fine.
std::string problem_of_name(const char* name) {
  const std::size_t length = strnlen(name, kNameLimit + 1);
  if (length == 0) return "is empty";
  if (length > kNameLimit) return "is longer than " + std::to_string(kNameLimit) + " characters";
  for (std::size_t i = 0; i < length; ++i) {
    const char c = name[i];
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_') {
      return "has character " + std::to_string(static_cast<unsigned char>(c)) + " at place " + std::to_string(i) +
             "; only [a-z0-9_] may be in it";
    }
  }
  return std::string_view(name, length) == "auto" ? "is 'auto', which is reserved" : "";
}

// The first required function that is NULL.
const char* missing_function(const gpunn_plugin& t) {
  const std::pair<bool, const char*> functions[] = {
      {t.probe != nullptr, "probe"},
      {t.device_open != nullptr, "device_open"},
      {t.device_close != nullptr, "device_close"},
      {t.device_info != nullptr, "device_info"},
      {t.memory_alloc != nullptr, "memory_alloc"},
      {t.memory_free != nullptr, "memory_free"},
      {t.copy != nullptr, "copy"},
      {t.fill != nullptr, "fill"},
      {t.stream_create != nullptr, "stream_create"},
      {t.stream_wrap != nullptr, "stream_wrap"},
      {t.stream_native != nullptr, "stream_native"},
      {t.stream_sync != nullptr, "stream_sync"},
      {t.stream_destroy != nullptr, "stream_destroy"},
      {t.event_create != nullptr, "event_create"},
      {t.event_record != nullptr, "event_record"},
      {t.event_wait != nullptr, "event_wait"},
      {t.event_sync != nullptr, "event_sync"},
      {t.event_elapsed != nullptr, "event_elapsed"},
      {t.event_destroy != nullptr, "event_destroy"},
      {t.op_query != nullptr, "op_query"},
      {t.op_create != nullptr, "op_create"},
      {t.op_enqueue != nullptr, "op_enqueue"},
      {t.op_free != nullptr, "op_free"},
      {t.shutdown != nullptr, "shutdown"},
  };
  for (const auto& [present, name] : functions) {
    if (!present) return name;
  }
  return nullptr;
}

// Why there is no gpunn_plugin_query_v1.
void explain_absence(const Library& library, Negotiated& result) {
  for (int major = 0; major <= kLargestMajor; ++major) {
    if (library.symbol(("gpunn_plugin_query_v" + std::to_string(major)).c_str()) == nullptr) continue;
    result.abi_major = major;
    fail(result, PluginStatus::abi_mismatch, mismatch(std::to_string(major)));
    return;
  }
  fail(result, PluginStatus::not_a_plugin,
       "the library does not export gpunn_plugin_query_v1, as every plugin does; it is something else, or was built "
       "without 'extern \"C\"'");
}

}  // namespace

void check_table(const void* table, Negotiated& result) {
  uint32_t size = 0;
  std::memcpy(&size, table, sizeof(size));
  if (size < kRequiredBytes || size > kAbsurdBytes) {
    return fail(result, PluginStatus::invalid,
                "its table says that it has " + std::to_string(size) + " bytes; at least " +
                    std::to_string(kRequiredBytes) + " are required, and more than " + std::to_string(kAbsurdBytes) +
                    " make no sense");
  }
  // A member that is covered in part is not there.
  const std::size_t known = std::min<std::size_t>(size, sizeof(gpunn_plugin)) / sizeof(void*) * sizeof(void*);
  gpunn_plugin& t = result.table;
  std::memcpy(&t, table, known);
  t.struct_size = sizeof(gpunn_plugin);
  result.abi_major = t.abi_major;
  result.abi_minor = t.abi_minor;
  if (t.abi_major != GPUNN_ABI_MAJOR) {
    return fail(result, PluginStatus::abi_mismatch, mismatch(version(t.abi_major, t.abi_minor)));
  }
  if (t.name == nullptr) return fail(result, PluginStatus::invalid, "its name is NULL");
  if (const std::string problem = problem_of_name(t.name); !problem.empty()) {
    return fail(result, PluginStatus::invalid, "its name " + problem);
  }
  if (t.base != nullptr) {
    if (const std::string problem = problem_of_name(t.base); !problem.empty()) {
      return fail(result, PluginStatus::invalid, "the name of its base " + problem);
    }
  }
  if (const char* function = missing_function(t); function != nullptr) {
    return fail(result, PluginStatus::invalid, std::string("its required function ") + function + " is NULL");
  }
  const int capture = (t.capture_begin != nullptr) + (t.capture_end != nullptr) + (t.graph_launch != nullptr) +
                      (t.graph_free != nullptr);
  if (capture != 0 && capture != 4) {
    return fail(result, PluginStatus::invalid,
                "of capture_begin, capture_end, graph_launch and graph_free it has " + std::to_string(capture) +
                    "; it must have all four or none");
  }
}

Negotiated negotiate(const Library& library) {
  Negotiated result;
  void* const symbol = library.symbol("gpunn_plugin_query_v1");
  if (symbol == nullptr) {
    explain_absence(library, result);
    return result;
  }
  result.abi_major = GPUNN_ABI_MAJOR;
  const auto query = reinterpret_cast<gpunn_plugin_query_v1_fn>(symbol);
  try {
    if (const gpunn_plugin* table = query(GPUNN_ABI_MAJOR, GPUNN_ABI_MINOR); table != nullptr) {
      check_table(table, result);
    } else {
      fail(result, PluginStatus::abi_mismatch,
           "the plugin says that it can't serve a host that speaks " + version(GPUNN_ABI_MAJOR, GPUNN_ABI_MINOR) +
               " (gpunn_plugin_query_v1 returned NULL)");
    }
  } catch (const std::exception& exception) {
    fail(result, PluginStatus::invalid, std::string("gpunn_plugin_query_v1 threw an exception: ") + exception.what());
  } catch (...) {
    fail(result, PluginStatus::invalid, "gpunn_plugin_query_v1 threw an exception of unknown type");
  }
  return result;
}

}  // namespace gpunn::plugins
