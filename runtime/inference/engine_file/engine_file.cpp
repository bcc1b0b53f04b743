#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/files.hpp"
#include "common/host_memory.hpp"
#include "common/text.hpp"
#include "data/rows/part_digest.hpp"
#include "inference/engine_file/program_json.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "inference/engine_file/type_json.hpp"
#include "storage/model_info.hpp"

namespace gpunn::inference {

static_assert(std::endian::native == std::endian::little, "engine files are little-endian, and read as they lie");

namespace {

constexpr std::string_view kMagic = "gpunnENG";
constexpr uint32_t kFormat = 2;     // since 2, samples that are not bytes come normalised
constexpr std::size_t kAlign = 64;  // of the header's end and of each array
constexpr uint64_t kMostParameters = uint64_t{1} << 36;
constexpr std::size_t kLargestFile = std::size_t{1} << 40;

// The beginning of the file, behind the magic.
struct Prefix {
  uint32_t format = kFormat;
  uint32_t crc = 0;  // of all that follows the prefix
  uint64_t header_bytes = 0;
};
constexpr std::size_t kPrefixEnd = kMagic.size() + sizeof(Prefix);

std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

Json target_json(const EngineTarget& target) {
  Json plugins = Json::array();
  for (const EnginePlugin& plugin : target.plugins) plugins.push_back({plugin.name, plugin.version});
  return {{"gpunn", target.gpunn},         {"abi", {target.abi_major, target.abi_minor}},
          {"plugins", std::move(plugins)}, {"device", target.device},
          {"driver", target.driver},       {"compute_units", target.compute_units},
          {"alignment", target.alignment}};
}

EngineTarget target_of_json(const Json& json) {
  EngineTarget target;
  target.gpunn = json.at("gpunn").get<std::string>();
  target.abi_major = json.at("abi").at(0).get<int64_t>();
  target.abi_minor = json.at("abi").at(1).get<int64_t>();
  for (const Json& plugin : json.at("plugins")) {
    target.plugins.push_back({plugin.at(0).get<std::string>(), plugin.at(1).get<std::string>()});
  }
  target.device = json.at("device").get<std::string>();
  target.driver = json.at("driver").get<std::string>();
  target.compute_units = json.at("compute_units").get<int64_t>();
  target.alignment = json.at("alignment").get<int64_t>();
  return target;
}

// A part of the parameters that a program reads.
struct ReadRange {
  uint64_t first = 0, count = 0;  // numbers
};

// What ops have made other constants of, as filters in eight bits, is not written.
std::vector<ReadRange> ranges_read(const SavedEngine& engine) {
  std::map<uint64_t, uint64_t> ends;  // by where it begins
  for (const auto& [rows, program] : engine.programs) {
    const graph::Graph& g = program.graph;
    for (const graph::Node& node : g.nodes()) {
      for (const graph::ValueId id : node.inputs) {
        if (g.value(g.root(id)).storage != graph::Storage::parameters) continue;
        const auto first = static_cast<uint64_t>(g.root_offset(id)) / sizeof(float);
        uint64_t& end = ends[first];
        end = std::max(end, first + g.value(id).type.bytes() / sizeof(float));
      }
    }
  }
  std::vector<ReadRange> ranges;
  for (const auto& [first, end] : ends) {
    const uint64_t covered = ranges.empty() ? 0 : ranges.back().first + ranges.back().count;
    if (ranges.empty() || first > covered) {
      ranges.push_back({first, end - first});
    } else if (end > covered) {
      ranges.back().count = end - ranges.back().first;
    }
  }
  return ranges;
}

Json header_json(const SavedEngine& engine, const std::vector<ReadRange>& read) {
  Json constants = Json::array(), programs = Json::array(), ranges = Json::array();
  for (const ReadRange& one : read) ranges.push_back({one.first, one.count});
  for (const storage::StoredTensor& one : engine.weights.constants) {
    constants.push_back({{"name", one.name}, {"type", type_json(one.type)}});
  }
  for (const auto& [rows, program] : engine.programs) {
    programs.push_back({{"rows", rows}, {"program", to_json(program)}});
  }
  return {{"target", target_json(engine.target)},
          {"experiment", engine.experiment},
          {"model", storage::model_info_text(engine.info)},
          {"weights",
           {engine.weights.parameters.size(), engine.weights.buffers.size(), engine.weights.scale.size(),
            engine.weights.shift.size()}},
          {"ranges", std::move(ranges)},
          {"constants", std::move(constants)},
          {"programs", std::move(programs)}};
}

class Parser {
 public:
  Parser(std::string_view bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

  SavedEngine parse() {
    const Json header = read_header();
    try {
      return engine_of(header);
    } catch (const Json::exception& error) {
      fail(std::string("its header describes no engine: ") + error.what());
    } catch (const storage::ModelInfoFailure& failure) {
      fail(std::string("what it tells of its model: ") + failure.what());
    } catch (const Error& error) {
      if (std::string_view(error.what()).starts_with(origin_)) throw;
      fail(error.what());
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(origin_ + ": not a sound engine: " + what + "; write it anew with 'gpunn export'");
  }

  Json read_header() {
    if (!bytes_.starts_with(kMagic)) {
      throw Error(origin_ +
                  ": is no engine of gpunn, or its beginning is lost; 'gpunn export RUN --to NAME.engine' "
                  "writes one, and TensorRT's are read by TensorRT alone");
    }
    if (bytes_.size() < kPrefixEnd) fail("it ends within its first " + std::to_string(kPrefixEnd) + " bytes");
    Prefix prefix;
    std::memcpy(&prefix, bytes_.data() + kMagic.size(), sizeof(prefix));
    if (prefix.format != kFormat) {
      throw Error(
          fmt::format("{}: an engine of format {}, and this gpunn reads format {}; write it anew with 'gpunn "
                      "export'",
                      origin_, prefix.format, kFormat));
    }
    const std::string_view rest = bytes_.substr(kPrefixEnd - sizeof(prefix.header_bytes));
    if (data::crc32_of(std::as_bytes(std::span(rest))) != prefix.crc) {
      fail("its checksum is not that of its bytes: it is truncated or damaged");
    }
    if (prefix.header_bytes > bytes_.size() - kPrefixEnd) fail("its header ends behind the file");
    at_ = kPrefixEnd + prefix.header_bytes;
    const std::string_view text = bytes_.substr(kPrefixEnd, prefix.header_bytes);
    try {
      return Json::parse(text.begin(), text.end());
    } catch (const Json::exception& error) {
      fail(std::string("its header is no JSON: ") + error.what());
    }
  }

  SavedEngine engine_of(const Json& header) {
    SavedEngine engine;
    engine.file = origin_;
    engine.target = target_of_json(header.at("target"));
    engine.experiment = header.at("experiment").get<std::string>();
    engine.info = storage::parse_model_info(header.at("model").get<std::string>());
    for (const Json& one : header.at("programs")) {
      const auto rows = one.at("rows").get<int64_t>();
      if (rows < 1) fail("a program is for " + std::to_string(rows) + " rows");
      if (!engine.programs.emplace(rows, program_of(one.at("program"))).second) {
        fail("two programs are for " + std::to_string(rows) + " rows");
      }
    }
    if (engine.programs.empty()) fail("it has no program");
    engine.weights.parameters = parameters(header.at("weights").at(0).get<uint64_t>(), header.at("ranges"));
    std::size_t i = 1;
    for (std::vector<float>* const array : {&engine.weights.buffers, &engine.weights.scale, &engine.weights.shift}) {
      *array = floats(header.at("weights").at(i++).get<uint64_t>());
    }
    for (const Json& one : header.at("constants")) {
      storage::StoredTensor tensor{one.at("name").get<std::string>(), type_of(one.at("type")), {}};
      const std::string_view bytes = take(tensor.type.bytes());
      const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
      tensor.values.assign(first, first + bytes.size());
      engine.weights.constants.push_back(std::move(tensor));
    }
    if (aligned(at_) != bytes_.size()) fail("it has bytes that belong to no array");
    return engine;
  }

  // The next array.
  std::string_view take(std::size_t bytes) {
    const std::size_t begin = aligned(at_);
    if (begin > bytes_.size() || bytes > bytes_.size() - begin) fail("an array ends behind the file");
    at_ = begin + bytes;
    return bytes_.substr(begin, bytes);
  }

  // What no program reads is 0.
  std::vector<float> parameters(uint64_t count, const Json& ranges) {
    if (count > kMostParameters) fail("it tells of " + std::to_string(count) + " parameters");
    require_host_memory(count * sizeof(float), origin_);
    std::vector<float> values(count);
    for (const Json& range : ranges) {
      const auto first = range.at(0).get<uint64_t>(), size = range.at(1).get<uint64_t>();
      if (first > count || size > count - first) fail("a range of its parameters ends behind their end");
      const std::string_view bytes = take(size * sizeof(float));
      if (size > 0) std::memcpy(values.data() + first, bytes.data(), bytes.size());
    }
    return values;
  }

  std::vector<float> floats(uint64_t count) {
    if (count > bytes_.size() / sizeof(float)) fail("an array ends behind the file");
    std::vector<float> values(count);
    const std::string_view bytes = take(count * sizeof(float));
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::string_view bytes_;
  const std::string& origin_;
  std::size_t at_ = 0;
};

}  // namespace

bool is_engine(const std::filesystem::path& file) { return file.extension() == ".engine"; }

SavedEngine parse_engine(std::string_view bytes, const std::string& origin) { return Parser(bytes, origin).parse(); }

SavedEngine load_engine(const std::filesystem::path& file) {
  const LongWork work("reading " + file.filename().string());
  return parse_engine(read_text(file, kLargestFile), file.string());
}

void save_engine(const std::filesystem::path& file, const SavedEngine& engine) {
  const LongWork work("writing " + file.filename().string());
  const std::vector<ReadRange> read = ranges_read(engine);
  const std::string header = header_json(engine, read).dump();
  std::string bytes(kPrefixEnd, '\0');
  bytes += header;
  const auto add = [&](std::span<const std::byte> values) {
    bytes.resize(aligned(bytes.size()));
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size());
  };
  const std::span<const float> parameters = engine.weights.parameters;
  for (const ReadRange& one : read) add(std::as_bytes(parameters.subspan(one.first, one.count)));
  for (const std::vector<float>* const array :
       {&engine.weights.buffers, &engine.weights.scale, &engine.weights.shift}) {
    add(std::as_bytes(std::span(*array)));
  }
  for (const storage::StoredTensor& constant : engine.weights.constants) add(constant.values);
  bytes.resize(aligned(bytes.size()));
  Prefix prefix;
  prefix.header_bytes = header.size();
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  std::memcpy(bytes.data() + kMagic.size(), &prefix, sizeof(prefix));
  const std::string_view rest = std::string_view(bytes).substr(kPrefixEnd - sizeof(prefix.header_bytes));
  prefix.crc = data::crc32_of(std::as_bytes(std::span(rest)));
  std::memcpy(bytes.data() + kMagic.size(), &prefix, sizeof(prefix));
  write_atomically(file, bytes);
}

}  // namespace gpunn::inference
