#include "config/checked_backends.hpp"

#include <gpunn/error.hpp>

#include <string_view>

#include "common/text.hpp"

namespace gpunn::config {

std::optional<CheckedBackends> checked_backends(const std::string& backend) {
  constexpr std::string_view kPrefix = "check:";
  if (backend.rfind(kPrefix, 0) != 0) return std::nullopt;
  const std::string names = backend.substr(kPrefix.size());
  const std::size_t comma = names.find(',');
  const bool two = comma != std::string::npos && comma > 0 && comma + 1 < names.size() &&
                   names.find(',', comma + 1) == std::string::npos;
  if (!two) {
    throw Error(
        "expected two names, as in check:cpu,mine (train on cpu, compare mine with it), found " + in_quotes(backend),
        ExitCode::usage);
  }
  return CheckedBackends{names.substr(0, comma), names.substr(comma + 1)};
}

void resolve_backend(std::string& backend, const std::function<void(std::string&)>& resolve) {
  try {
    auto two = checked_backends(backend);
    if (!two) return resolve(backend);
    resolve(two->trained);
    resolve(two->checked);
    backend = two->text();
  } catch (const Error&) {  // told of where the experiment is checked
  }
}

std::string trained_backend(const std::string& backend) {
  const auto two = checked_backends(backend);
  return two ? two->trained : backend;
}

void require_one_backend(const std::string& backend, const std::string& what) {
  if (!checked_backends(backend)) return;
  throw Error(what + " takes one backend, and " + in_quotes(backend) + " names two; give one of them with --backend",
              ExitCode::usage);
}

}  // namespace gpunn::config
