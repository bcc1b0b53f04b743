#include "storage/model_info.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include <nlohmann/json.hpp>

#include "common/text.hpp"

namespace gpunn::storage {

namespace {

using InfoJson = nlohmann::ordered_json;

constexpr int kDeepestInfo = 5;
constexpr std::size_t kMostInfoNames = 1'000'000;
constexpr std::size_t kLongestInfoName = std::size_t{1} << 20;
constexpr std::size_t kMostSampleDims = 7;  // and the rows
constexpr int64_t kMostSampleElements = int64_t{1} << 40;
constexpr int64_t kMostScale = 1 << 10;
constexpr std::array kColours = {"luma", "rgb"};       // of ColourPlanes
constexpr std::array kInputs = {"small", "enlarged"};  // of ModelInput
constexpr std::array kInfoParts = {"train", "validation", "test"};

std::string hexadecimal(uint32_t value) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", value);
  return text.data();
}

InfoJson json_of(const PartDigest& part) {
  return {{"rows", part.rows}, {"samples", hexadecimal(part.samples)}, {"targets", hexadecimal(part.targets)}};
}

// One member of an object, by its path for errors: "input.mean".
class Member {
 public:
  Member(const InfoJson& json, std::string path) : json_(json), path_(std::move(path)) {}

  Member operator[](const char* key) const {
    require(json_.is_object(), "an object");
    const auto found = json_.find(key);
    const std::string path = path_.empty() ? key : path_ + "." + key;
    if (found == json_.end()) throw ModelInfoFailure("'" + path + "' is missing");
    return {*found, path};
  }

  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }

  std::string text() const {
    require(json_.is_string() && json_.get_ref<const std::string&>().size() <= kLongestInfoName,
            "a text of at most " + std::to_string(kLongestInfoName) + " bytes");
    return json_.get<std::string>();
  }

  bool flag() const {
    require(json_.is_boolean(), "true or false");
    return json_.get<bool>();
  }

  int64_t count(int64_t least, int64_t most = std::numeric_limits<int64_t>::max()) const {
    const bool whole = json_.is_number_unsigned() && json_.get<uint64_t>() <= static_cast<uint64_t>(most);
    require(whole && json_.get<int64_t>() >= least,
            "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return json_.get<int64_t>();
  }

  int64_t integer() const {
    const bool fits = json_.is_number_integer() &&
                      (!json_.is_number_unsigned() ||
                       json_.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
    require(fits, "a whole number");
    return json_.get<int64_t>();
  }

  double number() const {
    require(json_.is_number() && std::isfinite(json_.get<double>()), "a finite number");
    return json_.get<double>();
  }

  uint32_t checksum() const {
    uint32_t value = 0;
    const std::string text = json_.is_string() ? json_.get<std::string>() : "";
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    require(text.size() == 8 && error == std::errc() && end == text.data() + text.size(), "8 hexadecimal digits");
    return value;
  }

  template <class F>
  auto list(F element, std::size_t most) const {
    require(json_.is_array() && json_.size() <= most, "an array of at most " + std::to_string(most) + " entries");
    std::vector<decltype(element(*this))> result;
    result.reserve(json_.size());
    for (std::size_t i = 0; i < json_.size(); ++i) {
      result.push_back(element(Member(json_[i], path_ + "[" + std::to_string(i) + "]")));
    }
    return result;
  }

  void require(bool holds, const std::string& expected) const {
    if (holds) return;
    std::string found = json_.dump(-1, ' ', false, InfoJson::error_handler_t::replace);
    if (found.size() > 60) found = found.substr(0, 60) + "...";
    throw ModelInfoFailure((path_.empty() ? "" : "'" + path_ + "': ") + "expected " + expected + ", found " + found);
  }

 private:
  const InfoJson& json_;
  std::string path_;
};

DType dtype_named(const Member& member) {
  const std::string name = member.text();
  const bool known = name == name_of(DType::u8) || name == name_of(DType::f32);
  member.require(known, "'u8' or 'f32'");
  return name == name_of(DType::u8) ? DType::u8 : DType::f32;
}

TensorType sample_type(const Member& input) {
  TensorType type{dtype_named(input["dtype"]), {}};
  const Member shape = input["shape"];
  type.shape = shape.list([](const Member& dim) { return dim.count(1, kMostSampleElements); }, kMostSampleDims);
  int64_t elements = type.shape.empty() ? 0 : 1;
  bool fits = elements == 1;
  for (const int64_t dim : type.shape) {
    fits = fits && !__builtin_mul_overflow(elements, dim, &elements) && elements <= kMostSampleElements;
  }
  shape.require(fits, "1 to 7 dimensions of a sample");
  return type;
}

InputInfo read_input(const Member& member) {
  InputInfo input;
  input.name = member["name"].text();
  input.sample = sample_type(member);
  const auto channels = static_cast<std::size_t>(input.sample.shape.front());
  const std::string each = std::to_string(channels) + " numbers, one for each channel or feature";
  const auto number = [](const Member& one) { return one.number(); };
  input.mean = member["mean"].list(number, channels);
  input.stddev = member["stddev"].list(number, channels);
  member["mean"].require(input.mean.size() == channels, each);
  member["stddev"].require(
      input.stddev.size() == channels && std::ranges::none_of(input.stddev, [](double s) { return s == 0; }),
      each + ", none of them 0");
  const auto text = [](const Member& one) { return one.text(); };
  input.columns = member["columns"].list(text, kMostInfoNames);
  member["columns"].require(input.columns.empty() || input.columns.size() == channels,
                            "no names, or " + std::to_string(channels));
  const Member fit = member["fit"];
  input.fit = {.crop = fit["crop"].flag(),
               .inside = fit.has("inside") && fit["inside"].flag(),
               .shorter_side = fit["shorter_side"].count(0, 1 << 24)};
  input.light_on_dark = member["light_on_dark"].flag();
  return input;
}

void read_target(const Member& target, ModelInfo& info) {
  const std::size_t outputs = info.outputs.size();
  const auto number = [](const Member& one) { return one.number(); };
  info.target_mean = target["mean"].list(number, outputs);
  info.target_stddev = target["stddev"].list(number, outputs);
  const bool fits = info.target_mean.empty() || info.target_mean.size() == outputs;
  const std::string each = "no numbers, or " + std::to_string(outputs);
  target["mean"].require(fits, each);
  target["stddev"].require(info.target_stddev.size() == info.target_mean.size(), each);
}

// One of the words, by its number.
template <class Enum, std::size_t count>
Enum word_of(const Member& member, const std::array<const char*, count>& words) {
  const std::string word = member.text();
  const auto found = std::ranges::find(words, word);
  std::string expected;
  for (const char* one : words) expected += (expected.empty() ? "" : " or ") + in_quotes(one);
  member.require(found != words.end(), expected);
  return static_cast<Enum>(found - words.begin());
}

PhotographInfo read_photographs(const Member& member) {
  return {.scale = member["scale"].count(1, kMostScale),
          .colours = word_of<ColourPlanes>(member["colours"], kColours),
          .input = word_of<ModelInput>(member["input"], kInputs)};
}

InfoJson json_of(const PhotographInfo& photographs) {
  return {{"scale", photographs.scale},
          {"colours", kColours.at(static_cast<std::size_t>(photographs.colours))},
          {"input", kInputs.at(static_cast<std::size_t>(photographs.input))}};
}

PartDigest read_part(const Member& part) {
  return {.rows = part["rows"].count(0), .samples = part["samples"].checksum(), .targets = part["targets"].checksum()};
}

// A member that says what is not usual is there only where it is not: older versions read what is usual.
InfoJson fit_json(const ImageFit& fit) {
  InfoJson json = {{"crop", fit.crop}, {"shorter_side", fit.shorter_side}};
  if (fit.inside) json["inside"] = true;
  return json;
}

}  // namespace

std::string model_info_text(const ModelInfo& info) {
  const InputInfo& input = info.input;
  InfoJson parts;
  const std::array<const PartDigest*, kInfoParts.size()> digests = {&info.data.train, &info.data.validation,
                                                                    &info.data.test};
  for (std::size_t i = 0; i < digests.size(); ++i) parts[kInfoParts[i]] = json_of(*digests[i]);
  InfoJson json = {
      {"task", info.task},
      {"input",
       {{"name", input.name},
        {"dtype", name_of(input.sample.dtype)},
        {"shape", input.sample.shape},
        {"mean", input.mean},
        {"stddev", input.stddev},
        {"columns", input.columns},
        {"fit", fit_json(input.fit)},
        {"light_on_dark", input.light_on_dark}}},
      {"outputs", info.outputs},
      {"target", {{"mean", info.target_mean}, {"stddev", info.target_stddev}}},
      {"data", {{"name", info.data.name}, {"source", info.data.source}, {"parts", parts}}},
  };
  if (!info.output_ids.empty()) json["output_ids"] = info.output_ids;
  if (info.photographs) json["photographs"] = json_of(*info.photographs);
  return json.dump(-1, ' ', false, InfoJson::error_handler_t::replace);
}

ModelInfo parse_model_info(std::string_view text) {
  InfoJson json;
  try {
    const auto shallow = [](int depth, InfoJson::parse_event_t, InfoJson&) {
      if (depth > kDeepestInfo) throw ModelInfoFailure("it is nested more deeply than " + std::to_string(kDeepestInfo));
      return true;
    };
    json = InfoJson::parse(text.begin(), text.end(), shallow);
  } catch (const InfoJson::exception& error) {
    throw ModelInfoFailure(std::string("it is not JSON: ") + error.what());
  }
  const Member root(json, "");
  ModelInfo info;
  info.task = root["task"].text();
  info.input = read_input(root["input"]);
  info.outputs = root["outputs"].list([](const Member& one) { return one.text(); }, kMostInfoNames);
  if (root.has("output_ids")) {
    info.output_ids = root["output_ids"].list([](const Member& one) { return one.integer(); }, kMostInfoNames);
    root["output_ids"].require(info.output_ids.size() == info.outputs.size(), "a whole number for each output");
  }
  read_target(root["target"], info);
  if (root.has("photographs")) info.photographs = read_photographs(root["photographs"]);
  const Member data = root["data"], parts = data["parts"];
  info.data = {.name = data["name"].text(),
               .source = data["source"].text(),
               .train = read_part(parts["train"]),
               .validation = read_part(parts["validation"]),
               .test = read_part(parts["test"])};
  return info;
}

std::string as_utf8(const std::string& name) {
  const InfoJson json = name;
  return InfoJson::parse(json.dump(-1, ' ', false, InfoJson::error_handler_t::replace)).get<std::string>();
}

}  // namespace gpunn::storage
