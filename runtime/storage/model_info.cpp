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

constexpr int kDeepestInfo = 6;
constexpr std::size_t kMostInfoNames = 1'000'000;
constexpr std::size_t kLongestInfoName = std::size_t{1} << 20;
constexpr std::size_t kMostSampleDims = 7;  // and the rows
constexpr int64_t kMostSampleElements = int64_t{1} << 40;
constexpr int64_t kMostScale = 1 << 10;
constexpr std::array kColours = {"luma", "rgb"};                    // of ColourPlanes
constexpr std::array kInputs = {"small", "enlarged"};               // of ModelInput
constexpr std::array kRoles = {"input", "target", "weight", "id"};  // of Role
constexpr std::size_t kMostFields = 1000;
constexpr std::array kDTypes = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
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
  for (const DType type : kDTypes) {
    if (name == name_of(type)) return type;
  }
  member.require(false, "a dtype, such as 'u8' or 'f32'");
  return DType::f32;
}

// The type of a row: no dimension for a number, at most 7.
TensorType row_type(const Member& field) {
  TensorType type{dtype_named(field["dtype"]), {}};
  const Member shape = field["shape"];
  type.shape = shape.list([](const Member& dim) { return dim.count(0, kMostSampleElements); }, kMostSampleDims);
  int64_t elements = 1;
  bool fits = true;
  for (const int64_t dim : type.shape) {
    fits = fits && !__builtin_mul_overflow(elements, dim, &elements) && elements <= kMostSampleElements;
  }
  shape.require(fits, "at most 7 dimensions of a sample");
  return type;
}

ImageFit read_fit(const Member& fit) {
  return {.crop = fit["crop"].flag(),
          .inside = fit.has("inside") && fit["inside"].flag(),
          .shorter_side = fit["shorter_side"].count(0, 1 << 24)};
}

std::vector<double> numbers_in(const Member& member, std::size_t most) {
  return member.list([](const Member& one) { return one.number(); }, most);
}

std::vector<std::string> names_in(const Member& member) {
  return member.list([](const Member& one) { return one.text(); }, kMostInfoNames);
}

// Throws if an input is normalised by other than one number for each channel or column.
void require_input(const Member& member, const Field& input) {
  member["shape"].require(!input.type.shape.empty() && input.type.elements() > 0, "1 to 7 dimensions of a sample");
  const auto channels = static_cast<std::size_t>(input.type.shape.front());
  const bool is_normalised = !input.mean.empty() || !input.stddev.empty();
  if (!is_normalised && input.type.dtype != DType::f32) return;
  const std::string each = std::to_string(channels) + " numbers, one for each channel or feature";
  member["mean"].require(input.mean.size() == channels, each);
  member["stddev"].require(
      input.stddev.size() == channels && std::ranges::none_of(input.stddev, [](double s) { return s == 0; }),
      each + ", none of them 0");
}

void require_scale(const Member& member, const Field& target) {
  const std::size_t columns = target.names.size();
  const std::string each = "no numbers, or " + std::to_string(columns);
  member["mean"].require(target.mean.empty() || target.mean.size() == columns, each);
  member["stddev"].require(target.stddev.size() == target.mean.size(), each);
}

// Versions before fields: members for the only input and target.
void read_input(const Member& member, Field& input) {
  input.name = member["name"].text();
  input.type = row_type(member);
  input.kind = input.type.shape.size() == 3 ? "image" : "numbers";
  input.mean = numbers_in(member["mean"], kMostInfoNames);
  input.stddev = numbers_in(member["stddev"], kMostInfoNames);
  require_input(member, input);
  input.names = names_in(member["columns"]);
  const auto channels = static_cast<std::size_t>(input.type.shape.front());
  member["columns"].require(input.names.empty() || input.names.size() == channels,
                            "no names, or " + std::to_string(channels));
  input.fit = read_fit(member["fit"]);
  input.light_on_dark = member["light_on_dark"].flag();
}

void read_input_and_target(const Member& root, Schema& fields) {
  read_input(root["input"], fields.input());
  Field& target = fields.target();
  target.names = names_in(root["outputs"]);
  if (root.has("output_ids")) {
    target.ids = root["output_ids"].list([](const Member& one) { return one.integer(); }, kMostInfoNames);
    root["output_ids"].require(target.ids.size() == target.names.size(), "a whole number for each output");
  }
  target.mean = numbers_in(root["target"]["mean"], kMostInfoNames);
  target.stddev = numbers_in(root["target"]["stddev"], kMostInfoNames);
  require_scale(root["target"], target);
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

// Members that say nothing are left out.
InfoJson json_of(const Field& field) {
  InfoJson json = {{"name", field.name},        {"role", kRoles.at(static_cast<std::size_t>(field.role))},
                   {"kind", field.kind},        {"dtype", name_of(field.type.dtype)},
                   {"shape", field.type.shape}, {"names", field.names},
                   {"mean", field.mean},        {"stddev", field.stddev}};
  if (!field.ids.empty()) json["ids"] = field.ids;
  if (field.fit.crop || field.fit.inside || field.fit.shorter_side > 0) json["fit"] = fit_json(field.fit);
  if (field.light_on_dark) json["light_on_dark"] = true;
  if (field.scale != 1) json["scale"] = field.scale;
  if (field.ignored) json["ignored"] = *field.ignored;
  return json;
}

Field read_field(const Member& member) {
  Field field{.name = member["name"].text(),
              .role = word_of<Role>(member["role"], kRoles),
              .kind = member["kind"].text(),
              .type = row_type(member),
              .names = names_in(member["names"]),
              .mean = numbers_in(member["mean"], kMostInfoNames),
              .stddev = numbers_in(member["stddev"], kMostInfoNames)};
  if (member.has("ids")) {
    field.ids = member["ids"].list([](const Member& one) { return one.integer(); }, kMostInfoNames);
    member["ids"].require(field.ids.size() == field.names.size(), "a whole number for each name");
  }
  if (member.has("fit")) field.fit = read_fit(member["fit"]);
  if (member.has("light_on_dark")) field.light_on_dark = member["light_on_dark"].flag();
  if (member.has("scale")) field.scale = member["scale"].count(1, kMostScale);
  if (member.has("ignored")) field.ignored = member["ignored"].integer();
  if (field.role == Role::input) require_input(member, field);
  if (field.role == Role::target) require_scale(member, field);
  return field;
}

}  // namespace

std::string model_info_text(const ModelInfo& info) {
  InfoJson parts, fields = InfoJson::array();
  const std::array<const PartDigest*, kInfoParts.size()> digests = {&info.data.train, &info.data.validation,
                                                                    &info.data.test};
  for (std::size_t i = 0; i < digests.size(); ++i) parts[kInfoParts[i]] = json_of(*digests[i]);
  for (const Field& field : info.fields) fields.push_back(json_of(field));
  InfoJson json = {
      {"task", info.task},
      {"fields", fields},
      {"data", {{"name", info.data.name}, {"source", info.data.source}, {"parts", parts}}},
  };
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
  if (root.has("fields")) {
    info.fields.fields = root["fields"].list(read_field, kMostFields);
    for (const Role role : {Role::input, Role::target}) {
      root["fields"].require(!info.fields.of(role).empty(), "an input and a target");
    }
  } else {
    read_input_and_target(root, info.fields);
  }
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
