#include "storage/safetensors.hpp"

#include <gpunn/error.hpp>
#include <gpunn/float_formats.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/files.hpp"
#include "common/text.hpp"

namespace gpunn::storage {

namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kLargestHeader = uint64_t{16} << 20;  // some 100 000 tensors
constexpr int kDeepest = 3;                              // file, tensor, shape
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMostDimensions = 8;
constexpr const char* kMetadata = "__metadata__";

struct Type {
  const char* name;
  DType stored, loaded;
};
constexpr std::array<Type, 7> kTypes = {{{"F32", DType::f32, DType::f32},
                                         {"F16", DType::f16, DType::f32},
                                         {"BF16", DType::bf16, DType::f32},
                                         {"F64", DType::f64, DType::f32},
                                         {"I64", DType::i64, DType::i64},
                                         {"I32", DType::i32, DType::i32},
                                         {"U8", DType::u8, DType::u8}}};

template <class T>
T read(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T, class Convert>
std::vector<std::byte> converted(std::string_view bytes, Convert convert) {
  std::vector<std::byte> result(bytes.size() / sizeof(T) * sizeof(float));
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    const float value = convert(read<T>(bytes.data() + i * sizeof(T)));
    std::memcpy(result.data() + i * sizeof(float), &value, sizeof(float));
  }
  return result;
}

std::vector<std::byte> values_of(DType stored, std::string_view bytes) {
  if (stored == DType::f16) return converted<uint16_t>(bytes, Half::of_bits);
  if (stored == DType::bf16) return converted<uint16_t>(bytes, BFloat16::of_bits);
  if (stored == DType::f64) return converted<double>(bytes, [](double value) { return static_cast<float>(value); });
  std::vector<std::byte> values(bytes.size());
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class Parser {
 public:
  Parser(std::string_view bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

  Safetensors parse() {
    if (bytes_.size() < kLengthBytes) fail("it has " + std::to_string(bytes_.size()) + " bytes, fewer than its length");
    uint64_t length = 0;
    for (std::size_t i = kLengthBytes; i > 0; --i) length = length << 8 | static_cast<unsigned char>(bytes_[i - 1]);
    if (length > kLargestHeader || length > bytes_.size() - kLengthBytes) {
      fail("its header claims " + std::to_string(length) + " bytes, the file has " + std::to_string(bytes_.size()));
    }
    data_ = bytes_.substr(kLengthBytes + length);
    read_header(header(bytes_.substr(kLengthBytes, length)));
    std::sort(places_.begin(), places_.end());
    uint64_t end = 0;
    for (const Place& place : places_) {
      if (place.begin != end) {
        fail("the values of " + in_quotes(place.name) + " begin at byte " + std::to_string(place.begin) +
             ", where those before end at " + std::to_string(end) + "; they must neither overlap nor leave a gap");
      }
      end = place.end;
    }
    if (end != data_.size()) {
      fail("it has " + std::to_string(data_.size()) + " bytes of values, its tensors " + std::to_string(end));
    }
    for (Place& place : places_) {
      StoredTensor tensor;
      tensor.name = std::move(place.name);
      tensor.type = {place.type.loaded, std::move(place.shape)};
      tensor.values = values_of(place.type.stored, data_.substr(place.begin, place.end - place.begin));
      result_.tensors.push_back(std::move(tensor));
    }
    return std::move(result_);
  }

 private:
  struct Place {
    uint64_t begin = 0, end = 0;
    std::string name;
    Type type = kTypes[0];
    Shape shape;
    bool operator<(const Place& other) const {
      return std::tie(begin, end, name) < std::tie(other.begin, other.end, other.name);
    }
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(origin_ + ": not a sound safetensors file: " + what);
  }

  Json header(std::string_view text) const {
    std::set<std::string> names;
    std::string twice;
    const auto look = [&](int depth, Json::parse_event_t event, Json& value) {
      if (event == Json::parse_event_t::key && depth == 1 && !names.insert(value.get<std::string>()).second) {
        twice = value.get<std::string>();
      }
      return depth <= kDeepest;
    };
    try {
      Json json = Json::parse(text.begin(), text.end(), look);
      if (!twice.empty()) fail("its header has the name " + in_quotes(twice) + " twice");
      if (!json.is_object()) fail("its header is not a JSON object");
      return json;
    } catch (const Json::exception& error) {
      fail(std::string("its header is not JSON: ") + error.what());
    }
  }

  void read_header(const Json& json) {
    for (const auto& [name, entry] : json.items()) {
      if (name == kMetadata) {
        read_metadata(entry);
      } else {
        read_tensor(name, entry);
      }
    }
  }

  void read_metadata(const Json& json) {
    if (!json.is_object()) fail("its metadata is not a JSON object");
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string()) fail("the metadata " + in_quotes(key) + " is not a text");
      result_.metadata[key] = value.get<std::string>();
    }
  }

  void read_tensor(const std::string& name, const Json& json) {
    const std::string title = "the tensor " + in_quotes(name);
    if (name.empty() || !json.is_object()) fail(title + " has no name, or is not a JSON object");
    const auto dtype = json.find("dtype"), shape = json.find("shape"), offsets = json.find("data_offsets");
    if (dtype == json.end() || !dtype->is_string() || shape == json.end() || !shape->is_array() ||
        offsets == json.end() || !offsets->is_array() || offsets->size() != 2) {
      fail(title + " needs 'dtype', 'shape' and two 'data_offsets'");
    }
    const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const Type& row) { return row.name == dtype->get_ref<const std::string&>(); });
    if (type == kTypes.end()) {
      fail(title + " is of type " + in_quotes(dtype->get<std::string>()) +
           "; known: F32, F16, BF16, F64, I64, I32, U8");
    }
    Place place;
    place.name = name;
    place.type = *type;
    uint64_t size = size_of(type->stored);
    if (shape->size() > kMostDimensions) fail(title + " has more than 8 dimensions");
    for (const Json& dim : *shape) {
      const std::optional<uint64_t> value = whole(dim);
      if (!value || *value > static_cast<uint64_t>(INT64_MAX)) fail(title + " has a dimension that is no size");
      place.shape.push_back(static_cast<int64_t>(*value));
      if (__builtin_mul_overflow(size, *value, &size)) fail(title + " is too large for any memory");
    }
    const std::optional<uint64_t> begin = whole((*offsets)[0]), end = whole((*offsets)[1]);
    if (!begin || !end || *begin > *end || *end > data_.size()) {
      fail(title + " lies outside of the " + std::to_string(data_.size()) + " bytes of values");
    }
    if (*end - *begin != size) {
      fail(title + " has " + std::to_string(*end - *begin) + " bytes, its shape " + to_string(place.shape) + " takes " +
           std::to_string(size));
    }
    place.begin = *begin;
    place.end = *end;
    places_.push_back(std::move(place));
  }

  static std::optional<uint64_t> whole(const Json& json) {
    return json.is_number_unsigned() ? std::optional(json.get<uint64_t>()) : std::nullopt;
  }

  std::string_view bytes_, data_;
  const std::string& origin_;
  std::vector<Place> places_;
  Safetensors result_;
};

const char* type_name(DType type) {
  const auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& known) { return known.stored == type; });
  return row == kTypes.end() ? "" : row->name;
}

}  // namespace

Safetensors parse_safetensors(std::string_view bytes, const std::string& origin) {
  return Parser(bytes, origin).parse();
}

Safetensors load_safetensors(const std::filesystem::path& file) {
  constexpr std::size_t kLargestFile = std::size_t{1} << 36;
  return parse_safetensors(read_text(file, kLargestFile), file.string());
}

void save_safetensors(const std::filesystem::path& file, const Safetensors& content) {
  Json header = Json::object();
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  uint64_t at = 0;
  for (const StoredTensor& tensor : content.tensors) {
    const uint64_t end = at + tensor.values.size();
    header[tensor.name] = {
        {"dtype", type_name(tensor.type.dtype)}, {"shape", tensor.type.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');  // values aligned
  std::array<char, kLengthBytes> length{};
  for (std::size_t i = 0; i < kLengthBytes; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  LongWork work("writing " + file.filename().string(), at, WorkUnit::bytes);
  write_atomically(file, [&](OutputFile& out) {
    out.write({length.data(), length.size()});
    out.write(text);
    for (const StoredTensor& tensor : content.tensors) {
      out.write({reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size()});
      work.advance(tensor.values.size());
    }
  });
}

}  // namespace gpunn::storage
