// Engine files: what they answer, and that a file or a machine that is not the engine's is refused.
#include "inference/engine_file/saved_engine.hpp"

#include <gpunn/engine.hpp>
#include <gpunn/network.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "data/rows/part_digest.hpp"
#include "inference/models.hpp"
#include "temporary_folder.hpp"

using namespace gpunn;
using namespace gpunn::testing;
namespace fs = std::filesystem;

namespace {

// A residual network whose norms are folded and whose filters are turned, and its file.
struct Written {
  TemporaryFolder folder;
  fs::path run = folder.path() / "small.h5", engine = folder.path() / "small.engine";

  explicit Written(const std::string& precision = "fp32", const std::vector<int64_t>& batches = {4, 1}) {
    const Experiment experiment = parse_experiment(
        "name: small\nmodel:\n  layers:\n"
        "    - conv2d: {filters: 16, kernel: 3, padding: 1}\n    - batch_norm\n    - relu: {name: r}\n"
        "    - conv2d: {filters: 16, kernel: 3, padding: 1}\n    - batch_norm: {name: n}\n"
        "    - add: {from: [r, n]}\n    - relu\n    - flatten\n    - linear: {units: 3}\n"
        "data: {dataset: arrays, batch_size: 4}\nbackend: cpu\ntraining: {precision: " +
            precision + "}\n",
        "small.yaml");
    ModelInfo info;
    info.fields.input().type = {DType::f32, {8, 6, 6}};
    info.fields.input().mean.assign(8, 0.5);
    info.fields.input().stddev.assign(8, 2.0);
    info.fields.target().names = {"a", "b", "c"};
    Network(experiment, info).save(run);
    export_engine(run, engine, batches, {.backend = "cpu"});
  }

  std::string bytes() const {
    std::ostringstream text;
    text << std::ifstream(engine, std::ios::binary).rdbuf();
    return text.str();
  }
};

}  // namespace

TEST_CASE("an engine answers as the model that it was made of, bit for bit") {
  for (const std::string precision : {"fp32", "bf16"}) {
    CAPTURE(precision);
    const Written written(precision);
    const Model planned = Model::load(written.engine), model = Model::load(written.run, {.max_batch = 4});
    CHECK(planned.max_batch() == 4);
    CHECK(planned.backend() == "cpu");
    CHECK(planned.info().fields.target().names == model.info().fields.target().names);
    for (const int64_t rows : {1, 4}) {
      const Samples samples = drawn(model, rows);
      CHECK(logits_of(planned, samples) == logits_of(model, samples));
      CHECK(planned.predict(samples.view())[0].classes[0].name == model.predict(samples.view())[0].classes[0].name);
    }
  }
}

TEST_CASE("a call whose number of rows an engine has no program for takes a larger one") {
  const Written written;
  const Model planned = Model::load(written.engine, {.calls = 2});
  const Samples four = drawn(planned, 4), two = drawn(planned, 2);  // the same first rows
  const std::vector<float> all = logits_of(planned, four), some = logits_of(planned, two);
  CHECK(std::vector<float>(all.begin(), all.begin() + 6) == some);
  CHECK(message_of([&] { logits_of(planned, Samples(planned, 5)); }).find("1 to 4 rows") != std::string::npos);
  CHECK_THROWS_AS(plan_inference(written.engine, 5), Error);
  CHECK(plan_inference(written.engine, 3).ops.size() > 4);
}

TEST_CASE("an engine says what it does not take") {
  const Written written;
  const auto refusal = [&](const ModelOptions& options) {
    return message_of([&] { Model::load(written.engine, options); });
  };
  CHECK(refusal({.overrides = {{"training.precision", "bf16"}}}).find("'training.precision'") != std::string::npos);
  CHECK(refusal({.precision = Precision::bf16}).find("another precision") != std::string::npos);
  CHECK(refusal({.image_size = {8, 8}}).find("another size") != std::string::npos);
  CHECK(refusal({.without_passes = {"fuse"}}).find("other passes") != std::string::npos);
  CHECK(refusal({.overrides = {{"data.batch_size", "2"}}}) == "(no error)");
  const Model planned = Model::load(written.engine);
  CHECK(message_of([&] { planned.explain(Samples(planned, 1).view()); }).find("explain the model") !=
        std::string::npos);
  CHECK(message_of([&] {
          export_engine(written.engine, written.folder.path() / "b.engine", {1});
        }).find("not of another engine") != std::string::npos);
  CHECK_THROWS_AS(export_engine(written.run, written.folder.path() / "b.engine", {1, 1}), Error);
  CHECK_THROWS_AS(export_engine(written.run, written.folder.path() / "b.onnx", {1}), Error);
}

TEST_CASE("an engine of another device, driver, plugin, contract or gpunn is refused, with what differs") {
  const Written written;
  const inference::SavedEngine original = inference::load_engine(written.engine);
  const auto refusal_after = [&](const auto& change) {
    inference::SavedEngine engine = original;
    change(engine.target);
    inference::save_engine(written.engine, engine);
    return message_of([&] { Model::load(written.engine); });
  };
  using Target = inference::EngineTarget;
  CHECK(refusal_after([](Target&) {}) == "(no error)");
  const auto refuses = [&](const std::string& words, const auto& change) {
    const std::string message = refusal_after(change);
    CAPTURE(message);
    CHECK(message.find("export it here") != std::string::npos);
    CHECK(message.find(words) != std::string::npos);
  };
  refuses("gpunn 0.0.9, here it is", [](Target& t) { t.gpunn = "0.0.9"; });
  refuses("the plugin contract 1.99, here", [](Target& t) { t.abi_minor = 99; });
  refuses("the backend cpu 0.0.1, here", [](Target& t) { t.plugins[0].version = "0.0.1"; });
  refuses("the device 'Another GPU', here", [](Target& t) { t.device = "Another GPU"; });
  refuses("the driver '1.2', here", [](Target& t) { t.driver = "1.2"; });
  refuses("compute units: 999", [](Target& t) { t.compute_units = 999; });
}

TEST_CASE("a truncated or damaged engine is refused") {
  const Written written;
  const std::string whole = written.bytes();
  const auto refusal = [](const std::string& bytes) {
    return message_of([&] { inference::parse_engine(bytes, "x.engine"); });
  };
  CHECK(refusal(whole) == "(no error)");
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{4}, std::size_t{10}, std::size_t{30}, whole.size() / 2, whole.size() - 1}) {
    CAPTURE(length);
    CHECK(refusal(whole.substr(0, length)).starts_with("x.engine: "));
  }
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = whole;
    const std::size_t at = i < 24 ? static_cast<std::size_t>(i) : random() % whole.size();
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    CAPTURE(at);
    CHECK(refusal(damaged).starts_with("x.engine: "));
  }
  CHECK(refusal("gpunnENG" + std::string(4, '\7') + whole.substr(12)).find("format") != std::string::npos);
  CHECK(refusal("ftrt, as TensorRT has it").find("TensorRT's") != std::string::npos);
}

TEST_CASE("an engine whose header is damaged and whose checksum is right is an error at most") {
  const std::string whole = Written().bytes();
  constexpr std::size_t kCrc = 12, kCovered = 16, kHeader = 24;
  std::mt19937 random(9);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string damaged = whole;
    const std::size_t header = std::min(whole.find("\"constants\""), whole.size());
    const std::size_t at = kHeader + random() % (i % 2 == 0 ? header - kHeader : whole.size() - kHeader);
    if (i % 4 == 0) {
      damaged.erase(at, 1 + random() % 9);
    } else {
      damaged[at] = "0123456789-{}[],:\"\\e.x"[random() % 22];
    }
    const std::string_view covered = std::string_view(damaged).substr(kCovered);
    const uint32_t crc = data::crc32_of(std::as_bytes(std::span(covered)));
    std::memcpy(damaged.data() + kCrc, &crc, sizeof(crc));
    CAPTURE(i, at);
    try {
      inference::parse_engine(damaged, "x.engine");
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("an engine whose checksum is right and whose parts do not fit is refused") {
  const Written written;
  const inference::SavedEngine original = inference::load_engine(written.engine);
  const auto refusal_after = [&](const auto& change) {
    inference::SavedEngine engine = original;
    change(engine, engine.programs.at(4));
    inference::save_engine(written.engine, engine);
    return message_of([&] {
      const Model model = Model::load(written.engine);
      logits_of(model, Samples(model, 4));
    });
  };
  using Engine = inference::SavedEngine;
  using Program = execution::CompiledProgram;
  CHECK(refusal_after([](Engine&, Program&) {}) == "(no error)");
  const auto refuses = [&](const char* what, const auto& change) {
    CAPTURE(what);
    const std::string message = refusal_after(change);
    CAPTURE(message);
    CHECK(message.find(written.engine.string()) != std::string::npos);
  };
  refuses("more weights", [](Engine& engine, Program&) { engine.weights.parameters.push_back(0); });
  refuses("no scale", [](Engine& engine, Program&) { engine.weights.scale.clear(); });
  refuses("an output of another shape", [](Engine&, Program& program) {
    program.graph.value(program.graph.nodes()[1].outputs[0]).type.shape[1] += 1;
  });
  refuses("a tensor behind the arena", [](Engine&, Program& program) {
    program.plan.value_offset[static_cast<std::size_t>(program.graph.nodes()[1].outputs[0])] = int64_t{1} << 40;
  });
  refuses("a smaller arena", [](Engine&, Program& program) { program.plan.arena_bytes = 64; });
  refuses("a plugin that is not there", [](Engine&, Program& program) { program.placements[1].level = 7; });
  refuses("less scratch memory than the kernel takes", [](Engine&, Program& program) {
    for (execution::Placement& one : program.placements) one.workspace_bytes = 0;
  });
  refuses("scratch memory whose end wraps around", [](Engine&, Program& program) {
    program.plan.workspace_offset[1] = int64_t{1} << 62;
    program.placements[1].workspace_bytes = UINT64_MAX - (uint64_t{1} << 62) + 64;
  });
  refuses("a tensor between two aligned places", [](Engine&, Program& program) {
    program.plan.value_offset[static_cast<std::size_t>(program.graph.nodes()[1].outputs[0])] += 4;
  });
  refuses("more predictions than the model has classes", [](Engine&, Program& program) {
    program.graph.value(inference::find_variable(program.graph, inference::variable::kPredictions)).type.shape[1] = 9;
  });
  refuses("more memory than there is", [](Engine&, Program& program) { program.plan.arena_bytes = uint64_t{1} << 50; });
  refuses("views of one another without end", [](Engine&, Program& program) {
    graph::Graph& g = program.graph;
    graph::ValueId of = g.add_value("first", {DType::f32, {4}}, graph::Storage::arena);
    program.plan.value_offset.push_back(-1);
    for (int i = 0; i < 2000; ++i) {
      of = g.add_view("view", of, {DType::f32, {4}});
      program.plan.value_offset.push_back(-1);
    }
  });
  refuses("an op with half an attribute", [](Engine&, Program& program) {
    program.graph.nodes()[1].attrs = graph::Attributes::of_struct({std::byte{2}, std::byte{0}});
  });
  refuses("an op less", [](Engine&, Program& program) { program.graph.nodes()[1].inputs.pop_back(); });
  refuses("no logits", [](Engine&, Program& program) {
    program.graph.value(inference::find_variable(program.graph, inference::variable::kLogits)).name = "other";
  });
}
