// Engine files: reading them, and running those that are sound on the backend cpu. An input is the JSON text of a
// header up to a byte 0, and the arrays behind it. What would stop nearly every input at once is made here: the
// checksum, the length of the header, and the device that the engine is for.
#include <gpunn/engine.hpp>
#include <gpunn/model.hpp>
#include <gpunn/network.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <sstream>
#include <vector>

#include "common/text.hpp"
#include "data/rows/part_digest.hpp"
#include "fuzz.hpp"
#include "inference/engine_file/program_json.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "session/open_backend.hpp"

namespace {

using namespace gpunn;
namespace fs = std::filesystem;
using Json = inference::Json;

constexpr std::size_t kCrc = 12, kCovered = 16, kHeader = 24, kAlign = 64;
constexpr uint64_t kFewBytes = uint64_t{1} << 26;  // a machine has room for more, and a process that fuzzes has not

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::string input_of(const std::string& engine) {
  uint64_t header = 0;
  std::memcpy(&header, engine.data() + kCovered, sizeof(header));
  const std::size_t arrays = std::min((kHeader + header + kAlign - 1) / kAlign * kAlign, engine.size());
  return engine.substr(kHeader, header) + '\0' + engine.substr(arrays);
}

std::string engine_of(std::string_view input) {
  const std::size_t header = std::min(input.find('\0'), input.size());
  std::string engine = "gpunnENG" + std::string(kHeader - 8, '\0');
  engine[8] = 1;
  const auto size = static_cast<uint64_t>(header);
  std::memcpy(engine.data() + kCovered, &size, sizeof(size));
  engine += input.substr(0, header);
  engine.resize((engine.size() + kAlign - 1) / kAlign * kAlign);
  if (header < input.size()) engine += input.substr(header + 1);
  engine.resize((engine.size() + kAlign - 1) / kAlign * kAlign);
  const std::string_view covered = std::string_view(engine).substr(kCovered);
  const uint32_t crc = data::crc32_of(std::as_bytes(std::span(covered)));
  std::memcpy(engine.data() + kCrc, &crc, sizeof(crc));
  return engine;
}

// Whether a machine would have to hold much for it: weights that no program reads are not in the file, nor is memory.
bool needs_much(const Json& json) {
  if (!json.is_structured()) return false;
  const auto is_large = [](const Json& number) {
    return number.is_number() && number.get<double>() > static_cast<double>(kFewBytes / sizeof(float));
  };
  if (json.is_object()) {
    if (is_large(json.value("arena_bytes", Json()))) return true;
    if (std::ranges::any_of(json.value("weights", Json::array()), is_large)) return true;
    double elements = 1;
    for (const Json& size : json.value("shape", Json::array())) {
      if (size.is_number()) elements *= std::max(size.get<double>(), 1.0);
    }
    if (is_large(elements)) return true;
  }
  return std::ranges::any_of(json, needs_much);
}

// Small models of most kinds of layers and types.
void write_corpus(const fs::path& folder) {
  const auto write = [&](const std::string& name, const std::string& layers, const std::string& more, Shape sample,
                         std::vector<std::string> outputs) {
    const Experiment experiment = parse_experiment(
        "name: m\nmodel:\n  layers:\n" + layers + "data: {dataset: arrays, batch_size: 2}\n" + "backend: cpu\n" + more,
        "m.yaml");
    ModelInfo info;
    info.fields.input().mean.assign(static_cast<std::size_t>(sample.front()), 0.5);
    info.fields.input().stddev.assign(static_cast<std::size_t>(sample.front()), 2.0);
    info.fields.input().type = {DType::u8, std::move(sample)};
    info.fields.target().names = std::move(outputs);
    const fs::path run = folder / "m.h5", engine = folder / "m.engine";
    Network(experiment, info).save(run);
    export_engine(run, engine, {2, 1}, {.backend = "cpu", .threads = 1});
    std::ofstream(folder / ("made-" + name), std::ios::binary) << input_of(read(engine));
    fs::remove(run);
    fs::remove(engine);
  };
  const std::string residual =
      "    - conv2d: {filters: 4, kernel: 3, padding: 1}\n    - batch_norm\n    - relu: {name: r}\n"
      "    - conv2d: {filters: 4, kernel: 3, padding: 1}\n    - batch_norm: {name: n}\n    - add: {from: [r, n]}\n"
      "    - relu\n    - max_pool: {window: 2}\n    - flatten\n    - linear: {units: 3}\n";
  write("linear", "    - linear: {units: 2}\n", "", {3}, {"a", "b"});
  write("residual", residual, "", {2, 4, 4}, {"a", "b", "c"});
  write("bf16", residual, "training: {precision: bf16}\n", {2, 4, 4}, {"a", "b", "c"});
  write("image", "    - conv2d: {filters: 12, kernel: 3, padding: 1}\n    - pixel_shuffle: {factor: 2}\n", "",
        {3, 4, 4}, {});
}

using Random = std::minstd_rand;

int64_t other_number(int64_t number, Random& random) {
  constexpr std::array<int64_t, 12> kSpecial = {
      -1, 0, 1, 2, 3, 64, 255, 1 << 20, INT32_MAX, int64_t{1} << 40, INT64_MAX, INT64_MIN};
  const auto twice = static_cast<int64_t>(static_cast<uint64_t>(number) * 2);
  const std::array<int64_t, 4> near = {number ^ 1, number ^ 64, twice, number / 2};
  return random() % 2 == 0 ? near[random() % near.size()] : kSpecial[random() % kSpecial.size()];
}

// Changes one thing at a random place: libFuzzer's own changes seldom leave a text that is JSON.
void change(Json& json, Random& random) {
  if (json.is_structured() && !json.empty()) {
    auto at = json.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random() % json.size()));
    if (random() % 16 != 0) return change(*at, random);
    if (json.is_array() && random() % 2 == 0) {
      json.push_back(Json(*at));
    } else {
      json.erase(at);
    }
  } else if (json.is_number_float()) {
    json = random() % 2 == 0 ? 0.0 : -1e30;
  } else if (json.is_number()) {
    json = other_number(json.get<int64_t>(), random);
  } else if (json.is_boolean()) {
    json = !json.get<bool>();
  } else if (json.is_string()) {
    constexpr std::array kWords = {"f32",   "i32",         "bf16",   "u8",     "arena",       "parameters",
                                   "state", "data",        "input",  "logits", "predictions", "input.rows",
                                   "COPY",  "GATHER_ROWS", "CONV2D", "MATMUL", "SOFTMAX"};
    json = kWords[random() % kWords.size()];
  }
}

struct Workplace {
  fuzz::Folder folder;
  Json target;

  Workplace() {
    const Experiment experiment = parse_experiment(
        "name: m\nmodel: {layers: [{linear: {units: 2}}]}\ndata: {dataset: arrays, batch_size: 2}\nbackend: cpu\n",
        "m.yaml");
    const plugins::PluginRegistry registry(experiment.plugins);
    inference::SavedEngine engine;
    engine.target = inference::target_of(*training::open_backend(experiment, registry, "cpu"));
    inference::save_engine(folder.path / "x.engine", engine);
    const std::string input = input_of(read(folder.path / "x.engine"));
    target = Json::parse(input.substr(0, input.find('\0'))).at("target");
  }
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  ::setenv("GPUNN_PLUGIN_PATH", GPUNN_FUZZ_PLUGINS, 1);
  for (int i = 1; i < *count; ++i) {
    if (!fs::is_directory((*arguments)[i])) continue;
    write_corpus((*arguments)[i]);
    break;
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(uint8_t* data, std::size_t bytes, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(uint8_t* data, std::size_t bytes, std::size_t most, unsigned seed) {
  Random random(seed);
  const std::string_view input = fuzz::text_of(data, bytes);
  const std::size_t header = std::min(input.find('\0'), input.size());
  Json json = Json::parse(input.substr(0, header), nullptr, false);
  if (json.is_discarded() || random() % 8 == 0) return LLVMFuzzerMutate(data, bytes, most);
  for (uint64_t i = 0; i <= random() % 3; ++i) change(json, random);
  const std::string text =
      json.dump(-1, ' ', false, Json::error_handler_t::replace) + std::string(input.substr(header));
  if (text.size() > most) return LLVMFuzzerMutate(data, bytes, most);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  static const Workplace here;
  const std::string_view input = fuzz::text_of(data, bytes);
  fuzz::expect_at_most_an_error([&] { inference::parse_engine(input, "x.engine"); });
  const std::size_t header = std::min(input.find('\0'), input.size());
  Json json = Json::parse(input.substr(0, header), nullptr, false);
  if (needs_much(json)) return 0;
  std::string text(input.substr(0, header));
  if (json.is_object() && json.contains("target")) {
    json["target"] = here.target;
    text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  const fs::path file = here.folder.path / "x.engine";
  std::ofstream(file, std::ios::binary) << engine_of(text + std::string(input.substr(header)));
  try {
    const Model model = Model::load(file, {.threads = 1, .calls = 1});
    const ModelTensor& in = model.inputs().front();
    for (const int64_t rows : {int64_t{1}, model.max_batch()}) {
      Shape shape = in.row.shape, answer = model.outputs().front().row.shape;
      shape.insert(shape.begin(), rows);
      answer.insert(answer.begin(), rows);
      const std::vector<std::byte> sample(static_cast<std::size_t>(rows) * in.row.bytes());
      std::vector<float> values(static_cast<std::size_t>(element_count(answer)));
      model.run(ArrayView{.name = in.name, .dtype = in.row.dtype, .shape = shape, .data = sample.data()},
                MutableArrayView{.name = "", .dtype = DType::f32, .shape = answer, .data = values.data()});
    }
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("x.engine") == std::string_view::npos) {
      std::fprintf(stderr, "an error that does not name the file: %s\n", error.what());
      std::abort();
    }
  }
  return 0;
}
