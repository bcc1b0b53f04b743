#include "plugins/call.hpp"

#include <gpunn/error.hpp>

#include <cstring>

namespace gpunn::plugins {

std::string name_of_status(gpunn_status status) {
  switch (status) {
    case GPUNN_OK:
      return "OK";
    case GPUNN_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case GPUNN_UNSUPPORTED:
      return "UNSUPPORTED";
    case GPUNN_OUT_OF_MEMORY:
      return "OUT_OF_MEMORY";
    case GPUNN_NO_DEVICE:
      return "NO_DEVICE";
    case GPUNN_DEVICE_LOST:
      return "DEVICE_LOST";
    case GPUNN_INTERNAL:
      return "INTERNAL";
    default:
      return "unknown status " + std::to_string(status);
  }
}

std::string text_of(gpunn_error& error) {
  error.message[sizeof(error.message) - 1] = '\0';
  std::string text = error.message;
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

std::string failure_text(const Plugin& plugin, const std::string& call, const CallResult& result) {
  return "plugin '" + plugin.name() + "': " + call + " failed (" + name_of_status(result.status) +
         "): " + (result.message.empty() ? "the plugin gave no reason" : result.message);
}

void throw_failure(const Plugin& plugin, const std::string& call, const CallResult& result) {
  const std::string text = failure_text(plugin, call, result);
  if (result.status == GPUNN_DEVICE_LOST) throw DeviceLostError(text);
  throw Error(text, result.status == GPUNN_NO_DEVICE ? ExitCode::missing : ExitCode::failed);
}

}  // namespace gpunn::plugins
