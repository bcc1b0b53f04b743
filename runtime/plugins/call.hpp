#pragma once

#include <gpunn/abi.h>

#include <exception>
#include <string>

#include "plugins/plugin.hpp"

namespace gpunn::plugins {

// The outcome of a call into a plugin.
struct CallResult {
  gpunn_status status = GPUNN_OK;
  std::string message;
  bool ok() const { return status == GPUNN_OK; }
};

std::string name_of_status(gpunn_status status);  // "OUT_OF_MEMORY"
// The message in `error`: NUL-terminated in any case, without control characters.
std::string text_of(gpunn_error& error);

// Calls `function(gpunn_error*)`. An exception that leaves the plugin, which is forbidden, becomes GPUNN_INTERNAL here
// instead of ending the process.
template <class F>
CallResult guarded(F&& function) {
  gpunn_error error;  // a kilobyte: only what is read is set
  error.struct_size = sizeof(error);
  error.status = GPUNN_OK;
  error.message[0] = '\0';
  try {
    const gpunn_status status = function(&error);
    if (status == GPUNN_OK) return {};
    return {status, text_of(error)};
  } catch (const std::exception& exception) {
    return {GPUNN_INTERNAL, std::string("it let an exception out, which no plugin may do: ") + exception.what()};
  } catch (...) {
    return {GPUNN_INTERNAL, "it let an exception of unknown type out, which no plugin may do"};
  }
}

// The same for functions that can't fail.
template <class F>
void guarded_void(F&& function) noexcept {
  try {
    function();
  } catch (...) {  // there is no way to report it
  }
}

// The message about a failed call: "plugin 'cpu': memory_alloc of 4 MiB failed (OUT_OF_MEMORY): <text>".
std::string failure_text(const Plugin& plugin, const std::string& call, const CallResult& result);
// Throws the Error, or DeviceLostError, of that text.
[[noreturn]] void throw_failure(const Plugin& plugin, const std::string& call, const CallResult& result);

// Calls `function(gpunn_error*)` of a plugin and throws if it fails. `call` is evaluated only then.
template <class F, class Name>
void call(const Plugin& plugin, const Name& name, F&& function) {
  const CallResult result = guarded(function);
  if (result.ok()) return;
  if constexpr (requires { std::string(name); }) {
    throw_failure(plugin, std::string(name), result);
  } else {
    throw_failure(plugin, name(), result);
  }
}

}  // namespace gpunn::plugins
