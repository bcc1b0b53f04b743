// Streaming on a backend whose streams run at the same time, each as slow as a test wants it: where a wait is missing,
// a step trains on the wrong rows.
#include "feed/batch_stream.hpp"

#include <algorithm>

#include "catch.hpp"
#include "common/files.hpp"
#include "execution/trace_checks.hpp"
#include "fields/values.hpp"
#include "plugins/plugin.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"
#include "training/samples/delayed.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

DelayedControl& control() {
  static const plugins::PluginRegistry registry({GPUNN_TRAINING_SAMPLE_DIR});
  const void* const found = registry.chain("delayed").front()->table().extension("test.delayed");
  return *static_cast<DelayedControl*>(const_cast<void*>(found));
}

// The sample's control in good order, before and after.
class Controlled {
 public:
  Controlled() { control().reset(); }
  Controlled(const Controlled&) = delete;
  Controlled& operator=(const Controlled&) = delete;
  ~Controlled() { control().reset(); }
  DelayedControl* operator->() const { return &control(); }
};

// 82 steps an epoch, the last of 2 rows: a group of 32 batches holds the end of one epoch and the begin of the next.
Experiment experiment_on(const char* backend, const char* residency, const char* train_samples = "650") {
  Experiment experiment = small_mlp("runs", {{"data.batch_size", "8"},
                                             {"data.synthetic_train", train_samples},
                                             {"data.drop_last", "false"},
                                             {"training.threads", "1"},
                                             {"data.residency", residency},
                                             {"backend", backend}});
  experiment.plugins = {GPUNN_TRAINING_SAMPLE_DIR};
  return experiment;
}

// The loss of each of the first steps, and of an evaluation in between and at the end.
std::vector<float> losses_of(training::Session& session, int64_t steps = 170) {
  std::vector<float> losses;
  session.train_steps(3);
  session.train_steps(steps / 3);
  losses.push_back(static_cast<float>(session.evaluate().loss));
  session.train_steps(steps - steps / 3 - 3);
  const std::vector<float> steps_losses = session.losses(0, steps);
  losses.insert(losses.end(), steps_losses.begin(), steps_losses.end());
  losses.push_back(static_cast<float>(session.evaluate().loss));
  return losses;
}

std::vector<float> losses_on(const char* backend, const char* residency, const char* train_samples = "650") {
  training::Session session = training::Session::open(experiment_on(backend, residency, train_samples));
  return losses_of(session);
}

}  // namespace

TEST_CASE("slow copies and slow computing change no bit of a streamed training") {
  const Controlled sample;
  const std::vector<float> expected = losses_on("cpu", "device");
  CHECK(losses_on("delayed", "device") == expected);
  struct Speed {
    int copy, gather, fill;
  };
  const Speed speed =
      GENERATE(Speed{0, 0, 0}, Speed{5000, 0, 0}, Speed{0, 500, 0}, Speed{2000, 200, 0}, Speed{0, 0, 5000});
  sample->copy_delay = speed.copy;
  sample->gather_delay = speed.gather;
  sample->fill_delay = speed.fill;
  sample->capturable = GENERATE(true, false);
  CAPTURE(speed.copy, speed.gather, speed.fill);
  CHECK(losses_on("delayed", "stream") == expected);
  CHECK(sample->overlapping_calls == 0);
  CHECK((sample->launches > 0) == sample->capturable);
}

// That the test above can fail: without a wait, it does.
TEST_CASE("a wait that is left out shows") {
  const Controlled sample;
  const std::vector<float> expected = losses_on("cpu", "device");
  SECTION("the computing does not wait for the copies") {
    sample->copy_delay = 5000;
    sample->forget_others = true;
  }
  SECTION("the copies do not wait for the computing") {
    sample->gather_delay = 500;
    sample->forget_first = true;
  }
  SECTION("the loader does not wait for the copies") {
    sample->copy_delay = 5000;
    sample->forget_host = true;
  }
  CHECK(losses_on("delayed", "stream") != expected);
}

TEST_CASE("a data set that would take more than half of what is free is streamed, and that is said") {
  const Controlled sample;
  // As many as make the half of it enough for the parameters, the activations and the ring.
  const int64_t data = (3000 + 200) * (28 * 28 + 4);
  sample->free_bytes = 2 * data;
  CHECK(training::Session::open(experiment_on("delayed", "auto", "3000")).data().residency() == Residency::device);
  sample->free_bytes = 2 * data - 2;
  training::Session streamed = training::Session::open(experiment_on("delayed", "auto", "3000"));
  CHECK(streamed.data().residency() == Residency::stream);
  CHECK_THAT(streamed.data().streaming_notice(), Contains("'digits'") && Contains("is streamed from the host"));
  CHECK(losses_of(streamed) == losses_on("cpu", "device", "3000"));
  CHECK(training::Session::open(experiment_on("delayed", "stream")).data().streaming_notice().empty());
}

TEST_CASE("a streamed session may be left at any moment") {
  const Controlled sample;
  sample->copy_delay = 1000;
  sample->gather_delay = 100;
  for (const int steps : {0, 1, 31, 32, 33, 65}) {
    training::Session session = training::Session::open(experiment_on("delayed", "stream"));
    session.train_steps(steps);
  }
  CHECK(sample->overlapping_calls == 0);
}

namespace {

const std::vector<training::DeviceField> kClasses = {{.name = kLabelField, .row = {DType::i32, {}}}};

// A stream on its own, whose rows are looked at in the ring.
struct Ring {
  plugins::PluginRegistry registry{{GPUNN_TRAINING_SAMPLE_DIR}};
  execution::Backend backend{registry, "delayed"};
  execution::Variables variables{backend};
  Split split;
  training::SplitType type;
  training::Sampling sampling;

  explicit Ring(int64_t rows, const training::Sampling& how) : sampling(how) {
    split.samples = {DType::u8, {rows, 3}};
    for (int64_t i = 0; i < 3 * rows; ++i) split.values.push_back(static_cast<std::byte>(i));
    std::vector<int32_t> classes;
    for (int64_t i = 0; i < rows; ++i) classes.push_back(static_cast<int32_t>(i));
    split.fields[kLabelField] = fields::class_values(classes);
    type.name = "train";
    type.samples = split.samples;
    type.fields = kClasses;
    type.ring = training::lay_out_ring(split.samples, kClasses, sampling.batch, backend.info().alignment);
  }

  // The labels of a step's batch, -1 where none is.
  std::vector<int32_t> labels(int64_t step) {
    const training::BatchRing& ring = *type.ring;
    std::vector<int32_t> words(static_cast<std::size_t>(ring.rows.elements()));
    backend.download(words.data(), variables.data("train.ring.rows"), ring.rows.bytes());
    std::vector<uint8_t> samples(ring.samples.bytes());
    backend.download(samples.data(), variables.data("train.ring.samples"), samples.size());
    const int32_t* const slot = words.data() + step % ring.slots() * ring.words();
    std::vector<int32_t> result;
    for (int64_t i = 0; i < ring.batch; ++i) {
      const int32_t index = slot[ring.index_at + i];
      CHECK((index >= 0) == (i < slot[ring.count_at]));
      result.push_back(index < 0 ? -1 : slot[i]);
      // The sample that the index leads to is that of the label.
      if (index >= 0) CHECK(samples.at(static_cast<std::size_t>(3 * index)) == static_cast<uint8_t>(3 * slot[i]));
    }
    return result;
  }

  training::Standardisers standardisers() const {
    return {.samples = {split.samples, {}, {}}, .fields = {{{DType::i32, {split.rows()}}, {}, {}}}};
  }

  std::vector<int32_t> expected(int64_t step) const {
    std::vector<int32_t> rows(static_cast<std::size_t>(sampling.batch));
    sampling.rows_of_step(step, rows);
    return rows;
  }
};

}  // namespace

TEST_CASE("launches of several steps find their batches in the ring, wherever a launch begins") {
  const Controlled sample;
  sample->copy_delay = 300;
  sample->fill_delay = 5000;  // of the zeros that the ring begins with
  Ring ring(45, {.rows = 45, .batch = 10, .shuffle = true, .drop_last = false, .seed = 3});
  training::BatchStream stream(ring.backend, ring.variables, ring.type,
                               training::fill_from_split(ring.split, ring.type, ring.sampling, ring.standardisers()));
  const int64_t most = ring.type.ring->group;
  CHECK(most == 32);
  for (const int64_t first : {0, 5, 1000003}) {
    stream.seek(first);
    CHECK(stream.steps_at_once() == most - first % most);
    int64_t step = first;
    for (const int64_t launch : {most, int64_t{1}, int64_t{3}, most, most, int64_t{2}}) {
      stream.before(launch);
      for (int64_t i = 0; i < launch; ++i, ++step) CHECK(ring.labels(step) == ring.expected(step));
      stream.after();
    }
  }
  CHECK_THROWS_WITH(stream.before(most + 1), Contains("expected 1 to 32"));
  CHECK_THROWS_WITH(stream.before(0), Contains("expected 1 to 32"));
}

TEST_CASE("a stream ends where it was told to") {
  const Controlled sample;
  Ring ring(45, {.rows = 45, .batch = 10});
  training::BatchStream stream(ring.backend, ring.variables, ring.type,
                               training::fill_from_split(ring.split, ring.type, ring.sampling, ring.standardisers()));
  stream.seek(0, 5);
  for (int64_t step = 0; step < 5; ++step) {
    stream.before();
    CHECK(ring.labels(step) == ring.expected(step));
    stream.after();
  }
  CHECK(ring.expected(4) == std::vector<int32_t>{40, 41, 42, 43, 44, -1, -1, -1, -1, -1});
}

TEST_CASE("large batches go in groups of one") {
  const training::BatchRing ring = training::lay_out_ring({DType::u8, {1000, 3, 512, 512}}, kClasses, 64, 256);
  CHECK(ring.group == 1);
  CHECK(ring.samples == TensorType{DType::u8, {128, 3, 512, 512}});
  CHECK(ring.index_at * 4 % 256 == 0);
  CHECK(ring.count_at * 4 % 256 == 0);
  CHECK(ring.words() * 4 % 256 == 0);
}

TEST_CASE("a profile of a streamed training shows copies beside the computing") {
  const Controlled sample;
  sample->copy_delay = 2000;
  sample->gather_delay = 300;
  const TemporaryFolder folder;
  RunOptions options;
  options.run_folder = folder / "run";
  options.profile = ProfileOptions{.file = {}, .steps = 5, .warmup = 2};
  const RunResult run = train(experiment_on("delayed", "stream"), options);
  const auto trace = trace_checks::checked(read_text(run.profile->file));
  const auto row = [&](const std::string& end) {
    for (const auto& [name, spans] : trace.spans) {
      if (name.ends_with(end)) return spans;
    }
    FAIL("no row " << end);
    return std::vector<trace_checks::Json>{};
  };
  const auto copies = row("copies of batches to the device");
  const auto steps = trace_checks::of_category(row("compute"), "step");
  REQUIRE(copies.size() >= 2);
  CHECK(copies[0].at("name") == "batches of steps 65 to 96");  // the first two groups came before
  CHECK(copies[0].at("args").at("bytes").get<double>() > 32 * 8 * 28 * 28);
  const auto begin = [](const auto& span) { return span.at("ts").template get<double>(); };
  const auto end = [&](const auto& span) { return begin(span) + span.at("dur").template get<double>(); };
  // Some, not all: a busy machine may let a thread sleep while the other works.
  CHECK(std::ranges::any_of(copies, [&](const auto& copy) {
    return std::ranges::any_of(steps,
                               [&](const auto& step) { return begin(step) < end(copy) && begin(copy) < end(step); });
  }));
}
