#include "interchange/onnx/external_data.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/parse_number.hpp"
#include "common/text.hpp"

namespace gpunn::interchange {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostDataFiles = 64;  // that are open at the same time

[[noreturn]] void refuse_data(const fs::path& model, const std::string& tensor, const std::string& why) {
  throw Error(model.string() + ": the values of " + in_quotes(tensor) + " are in another file, " + why);
}

std::optional<uint64_t> number_in(const std::map<std::string, std::string>& keys, const std::string& key) {
  const auto found = keys.find(key);
  if (found == keys.end()) return 0;
  return parse_number<uint64_t>(found->second);
}

// Whether `path` is `folder` or in it; both as the file system has them.
bool is_within(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

InputFile& ExternalData::open(const std::string& tensor, const std::string& location) {
  const auto found = files_.find(location);
  if (found != files_.end()) return *found->second;
  const fs::path relative(location);
  const bool climbs = std::ranges::find(relative, fs::path("..")) != relative.end();
  if (location.empty() || location.find('\0') != std::string::npos || relative.is_absolute() || climbs) {
    refuse_data(model_, tensor,
                "by the path " + in_quotes(location) + "; expected a relative path without '..', within its folder");
  }
  const fs::path folder = model_.has_parent_path() ? model_.parent_path() : fs::path(".");
  const fs::path path = folder / relative;
  std::error_code error;
  const fs::path real = fs::canonical(path, error), home = error ? fs::path() : fs::canonical(folder, error);
  if (error) {
    throw Error(model_.string() + ": the values of " + in_quotes(tensor) + " are in " + path.string() +
                    ", which can't be read: " + error.message() + ". Copy it there, beside the model",
                ExitCode::missing);
  }
  if (!is_within(real, home)) {
    refuse_data(model_, tensor, path.string() + ", a link that leads out of the model's folder. Copy the file there");
  }
  if (files_.size() >= kMostDataFiles) files_.clear();
  return *files_.emplace(location, std::make_unique<InputFile>(real)).first->second;
}

std::vector<std::byte> ExternalData::read(const std::string& tensor, const std::map<std::string, std::string>& keys,
                                          uint64_t bytes) {
  const auto location = keys.find("location");
  if (location == keys.end()) refuse_data(model_, tensor, "but the model does not say in which");
  const std::optional<uint64_t> offset = number_in(keys, "offset"), length = number_in(keys, "length");
  if (!offset || !length) refuse_data(model_, tensor, "and its offset or length there is not a number");
  if (keys.contains("length") && *length != bytes) {
    refuse_data(
        model_, tensor,
        "and have " + std::to_string(*length) + " bytes there; their type and shape want " + std::to_string(bytes));
  }
  InputFile& file = open(tensor, location->second);
  if (*offset > file.bytes() || bytes > file.bytes() - *offset) {
    refuse_data(model_, tensor,
                file.path().string() + ", which has " + std::to_string(file.bytes()) + " bytes; expected " +
                    std::to_string(bytes) + " from " + std::to_string(*offset) + " on");
  }
  std::vector<std::byte> values(bytes);
  file.seek(*offset);
  if (file.read(std::span(values)) != values.size()) {
    refuse_data(model_, tensor, file.path().string() + ", which became shorter while it was read");
  }
  return values;
}

}  // namespace gpunn::interchange
