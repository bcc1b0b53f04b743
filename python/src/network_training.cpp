// Arrays and batches of Python, as a network learns from them.
#include <gpunn/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "errands/errand.hpp"
#include "errands/listener.hpp"
#include "network.hpp"
#include "values/arrays.hpp"

namespace gpunn::python {

namespace {

using Labels = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename Array>
TensorType type_of(const Array& array) {
  TensorType type{dtype_of(array.dtype()), {}};
  for (std::size_t i = 0; i < array.ndim(); ++i) type.shape.push_back(static_cast<int64_t>(array.shape(i)));
  return type;
}

// Samples that stay where they are; the result keeps them alive.
std::shared_ptr<const std::byte> lent(const PackedArray& samples) {
  return {static_cast<const std::byte*>(samples.data()), [kept = PackedArray(samples)](const std::byte*) mutable {
            const nb::gil_scoped_acquire lock;
            kept = PackedArray();
          }};
}

// The numbers of the inputs as a data set has them: an image or numbers come first, integers do not.
std::vector<std::size_t> input_order(const Network& network) {
  const std::vector<const Field*> inputs = network.info().fields.of(Role::input);
  std::vector<std::size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return inputs[i]->type.dtype == DType::i32; });
  return order;
}

std::vector<PackedArray> ordered_samples(const std::vector<std::size_t>& order, const std::vector<PackedArray>& given) {
  if (given.size() != order.size()) throw Error("expected an array for each input", ExitCode::usage);
  std::vector<PackedArray> samples;
  for (const std::size_t i : order) samples.push_back(given[i]);
  return samples;
}

FieldValues copied(const PackedArray& numbers) {
  FieldValues field;
  field.type = type_of(numbers);
  field.values.resize(numbers.size() * numbers.itemsize());
  if (numbers.size() > 0) std::memcpy(field.values.data(), numbers.data(), field.values.size());
  return field;
}

// A part of a data set. `weights` of the rows: f64 [rows, 1].
Split part_of(const Network& network, const std::vector<PackedArray>& given, const nb::object& targets,
              const std::optional<PackedArray>& weights) {
  const std::vector<std::size_t> order = input_order(network);
  const std::vector<PackedArray> samples = ordered_samples(order, given);
  const std::vector<const Field*> inputs = network.info().fields.of(Role::input);
  Split part;
  part.samples = type_of(samples.front());
  part.lent = lent(samples.front());
  for (std::size_t i = 1; i < samples.size(); ++i) {
    FieldValues values;
    values.type = type_of(samples[i]);
    values.lent = lent(samples[i]);
    part.fields[inputs[order[i]]->name] = std::move(values);
  }
  if (weights) part.fields[kWeightField] = copied(*weights);
  Labels labels;
  if (nb::try_cast(targets, labels, false)) {
    const auto* const first = reinterpret_cast<const std::byte*>(labels.data());
    FieldValues values;
    values.type = {DType::i32, {static_cast<int64_t>(labels.shape(0))}};
    values.values.assign(first, first + labels.shape(0) * sizeof(int32_t));
    part.fields[kLabelField] = std::move(values);
    return part;
  }
  part.fields[kTargetField] = copied(nb::cast<PackedArray>(targets));
  return part;
}

Dataset arrays_for(const Network& network, bool has_weights) {
  Dataset set;
  set.name = kArrays;
  set.source = "the calling program";
  const std::vector<const Field*> inputs = network.info().fields.of(Role::input);
  if (inputs.size() > 1 || inputs.front()->type.dtype == DType::i32) {
    set.fields.fields.clear();
    for (const std::size_t i : input_order(network)) set.fields.fields.push_back(*inputs[i]);
  }
  set.fields.target() = network.info().fields.target();
  if (has_weights) {
    set.fields.fields.push_back(
        {.name = kWeightField, .role = Role::weight, .kind = "numbers", .type = {DType::f32, {1}}});
  }
  return set;
}

void copy(const PackedArray& from, std::span<std::byte> to, const char* what) {
  const std::size_t bytes = from.size() * from.itemsize();
  if (bytes > to.size()) throw Error(std::string("a batch has more ") + what + " than there is room for");
  if (bytes > 0) std::memcpy(to.data(), from.data(), bytes);
}

// Another thread is a network's user while one lives.
class LentUser {
 public:
  LentUser(std::shared_ptr<std::atomic<std::thread::id>> user, std::thread::id other)
      : user_(std::move(user)), own_(user_->exchange(other)) {}
  LentUser(const LentUser&) = delete;
  LentUser& operator=(const LentUser&) = delete;
  ~LentUser() { *user_ = own_; }

 private:
  std::shared_ptr<std::atomic<std::thread::id>> user_;
  std::thread::id own_;
};

// Numbers come in f64, as _arrays.py converts them.
DType batch_dtype(const Field& field) {
  const bool numbers = field.kind == "numbers" || (field.role == Role::input && field.type.dtype == DType::f32);
  return numbers ? DType::f64 : field.type.dtype;
}

// Batches from `next(step)`, which returns (the samples of each input, targets) that were checked, contiguous and of
// the right types. It is called on the thread that waits for the training, as callbacks are: Ctrl-C reaches it there.
class PythonBatches final : public BatchSource {
 public:
  PythonBatches(nb::object next, std::shared_ptr<std::atomic<std::thread::id>> user, std::vector<std::size_t> order)
      : next_(std::move(next)), user_(std::move(user)), order_(std::move(order)) {}
  ~PythonBatches() override {
    const nb::gil_scoped_acquire lock;
    next_.reset();
  }
  // Before the training begins.
  void serve(Errand& errand) { errand_ = &errand; }

  DType dtype_of(const Field& field) const override { return batch_dtype(field); }
  int64_t read(int64_t step, const BatchRoom& room) override {
    const auto answer = std::make_shared<Answer>();
    // The training goes on meanwhile, so what the batches come from must not read the network.
    const bool answered = errand_->ask(
        [step, answer, order = order_, next = next_.ptr(), user = user_, loader = std::this_thread::get_id()] {
          const auto kept = answer;
          const LentUser lent(user, loader);
          try {
            const nb::object batch = nb::borrow(next)(step);
            kept->samples = ordered_samples(order, nb::cast<std::vector<PackedArray>>(batch[0]));
            kept->targets = nb::cast<PackedArray>(batch[1]);
          } catch (nb::python_error& error) {
            if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C, which the errand heeds
            kept->failure = std::current_exception();
          }
        });
    if (!answered) throw Error("the training is to stop", ExitCode::interrupted);
    if (answer->failure != nullptr) std::rethrow_exception(answer->failure);
    copy(answer->samples.front(), room.samples, "samples");
    for (std::size_t i = 1; i < answer->samples.size(); ++i) copy(answer->samples[i], room.fields[i - 1], "samples");
    copy(answer->targets, room.fields.back(), "targets");
    return static_cast<int64_t>(answer->samples.front().shape(0));
  }

 private:
  struct Answer {
    ~Answer() {
      if (samples.empty() && !targets.is_valid()) return;
      const nb::gil_scoped_acquire lock;
      samples.clear();
      targets = PackedArray();
    }
    std::vector<PackedArray> samples;  // of the inputs, the first one of the data set first
    PackedArray targets;
    std::exception_ptr failure;
  };
  nb::object next_;
  std::shared_ptr<std::atomic<std::thread::id>> user_;
  std::vector<std::size_t> order_;  // see input_order()
  Errand* errand_ = nullptr;
};

}  // namespace

InUse::InUse(const PythonNetwork& network, Kind kind) : user_(network.user) {
  std::thread::id user;
  first_ = user_->compare_exchange_strong(user, std::this_thread::get_id());
  if (first_ || (kind == Kind::reads && user == std::this_thread::get_id())) return;
  throw Error("the network is in use: " + std::string(user == std::this_thread::get_id()
                                                          ? "a callback of its training can't change it"
                                                          : "it is trained, evaluated or saved at this moment. "
                                                            "Callbacks of a training may read it; other threads "
                                                            "and the source of its batches may not"),
              ExitCode::usage);
}

InUse::~InUse() {
  if (first_) *user_ = std::thread::id();
}

void train(PythonNetwork& self, const std::vector<PackedArray>& samples, const nb::object& targets,
           const std::optional<PackedArray>& weights, const std::optional<std::vector<PackedArray>>& val_samples,
           const nb::object& val_targets, const nb::object& next, int64_t rows, nb::handle listener,
           const std::string& run_folder, const std::string& rounded_to) {
  const auto in_use = std::make_shared<InUse>(self, InUse::Kind::writes);
  const auto set = std::make_shared<Dataset>(arrays_for(*self.network, weights.has_value()));
  std::shared_ptr<PythonBatches> batches;
  if (next.is_none()) {
    set->train = part_of(*self.network, samples, targets, weights);
    if (rounded_to == name_of(DType::f16)) set->train.rounded_to = DType::f16;
  } else {
    set->train.samples = type_of(ordered_samples(input_order(*self.network), samples).front());
    set->train.samples.shape.front() = rows;
    set->batches = batches = std::make_shared<PythonBatches>(next, self.user, input_order(*self.network));
  }
  if (val_samples) {
    set->validation = part_of(*self.network, *val_samples, val_targets, std::nullopt);
  } else {
    set->unwatched = true;
  }
  on_errand(
      true,
      [network = self.network, in_use, set, batches, listener, run_folder](Errand& errand) {
        if (batches != nullptr) batches->serve(errand);
        PythonListener told(errand, listener);
        return network->train(std::move(*set), {.listener = &told, .stop = errand.stop(), .run_folder = run_folder});
      },
      "a training");
}

EvalReport evaluate(const PythonNetwork& self, const std::vector<PackedArray>& samples, const nb::object& targets,
                    const std::optional<PackedArray>& weights) {
  std::shared_ptr<Network> network;  // with the weights of now, while Ctrl-C may leave the evaluation alone
  {
    const InUse in_use(self, InUse::Kind::reads);
    network = std::make_shared<Network>(*self.network);
  }
  const auto set = std::make_shared<Dataset>(arrays_for(*network, weights.has_value()));
  set->test = part_of(*network, samples, targets, weights);
  return on_errand(
      false, [network, set](Errand&) { return network->evaluate(std::move(*set)); }, "an evaluation");
}

}  // namespace gpunn::python
