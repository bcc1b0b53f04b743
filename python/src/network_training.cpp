// Arrays and batches of Python, as a network learns from them.
#include <gpunn/error.hpp>

#include <cstring>
#include <span>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "errand.hpp"
#include "listener.hpp"
#include "network.hpp"

namespace gpunn::python {

namespace {

using Labels = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename Array>
TensorType type_of(const Array& array) {
  TensorType type{dtype_of(array.dtype()), {}};
  for (std::size_t i = 0; i < array.ndim(); ++i) type.shape.push_back(static_cast<int64_t>(array.shape(i)));
  return type;
}

// Parts of a data set. The samples stay where they are; the part keeps them alive.
Split part_of(const PackedArray& samples, const nb::object& targets) {
  Split part;
  part.samples = type_of(samples);
  part.lent = std::shared_ptr<const std::byte>(static_cast<const std::byte*>(samples.data()),
                                               [kept = PackedArray(samples)](const std::byte*) mutable {
                                                 const nb::gil_scoped_acquire lock;
                                                 kept = PackedArray();
                                               });
  Labels labels;
  if (nb::try_cast(targets, labels, false)) {
    const auto* const first = reinterpret_cast<const std::byte*>(labels.data());
    FieldValues values;
    values.type = {DType::i32, {static_cast<int64_t>(labels.shape(0))}};
    values.values.assign(first, first + labels.shape(0) * sizeof(int32_t));
    part.fields[kLabelField] = std::move(values);
    return part;
  }
  const auto numbers = nb::cast<PackedArray>(targets);
  FieldValues field;
  field.type = type_of(numbers);
  field.values.resize(numbers.size() * numbers.itemsize());
  if (numbers.size() > 0) std::memcpy(field.values.data(), numbers.data(), field.values.size());
  part.fields[kTargetField] = std::move(field);
  return part;
}

Dataset arrays_for(const Network& network) {
  Dataset set;
  set.name = kArrays;
  set.source = "the calling program";
  set.fields.target() = network.info().fields.target();
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
DType batch_dtype(const Field& target) { return target.kind == "numbers" ? DType::f64 : target.type.dtype; }

// Batches from `next(step)`, which returns (samples, targets) that were checked, contiguous and of the right types. It
// is called on the thread that waits for the training, as callbacks are: Ctrl-C reaches it there.
class PythonBatches final : public BatchSource {
 public:
  PythonBatches(nb::object next, std::shared_ptr<std::atomic<std::thread::id>> user, DType targets)
      : next_(std::move(next)), user_(std::move(user)), targets_(targets) {}
  ~PythonBatches() override {
    const nb::gil_scoped_acquire lock;
    next_.reset();
  }
  // Before the training begins.
  void serve(Errand& errand) { errand_ = &errand; }

  DType dtype_of(const Field& /*field*/) const override { return targets_; }
  int64_t read(int64_t step, const BatchRoom& room) override {
    const auto answer = std::make_shared<Answer>();
    // The training goes on meanwhile, so what the batches come from must not read the network.
    const bool answered =
        errand_->ask([step, answer, next = next_.ptr(), user = user_, loader = std::this_thread::get_id()] {
          const auto kept = answer;
          const LentUser lent(user, loader);
          try {
            const nb::object batch = nb::borrow(next)(step);
            kept->samples = nb::cast<PackedArray>(batch[0]);
            kept->targets = nb::cast<PackedArray>(batch[1]);
          } catch (nb::python_error& error) {
            if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C, which the errand heeds
            kept->failure = std::current_exception();
          }
        });
    if (!answered) throw Error("the training is to stop", ExitCode::interrupted);
    if (answer->failure != nullptr) std::rethrow_exception(answer->failure);
    copy(answer->samples, room.samples, "samples");
    copy(answer->targets, room.fields.front(), "targets");
    return static_cast<int64_t>(answer->samples.shape(0));
  }

 private:
  struct Answer {
    ~Answer() {
      if (!samples.is_valid() && !targets.is_valid()) return;
      const nb::gil_scoped_acquire lock;
      samples = targets = PackedArray();
    }
    PackedArray samples, targets;
    std::exception_ptr failure;
  };
  nb::object next_;
  std::shared_ptr<std::atomic<std::thread::id>> user_;
  DType targets_;
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

void train(PythonNetwork& self, const PackedArray& samples, const nb::object& targets,
           const std::optional<PackedArray>& val_samples, const nb::object& val_targets, const nb::object& next,
           int64_t rows, nb::handle listener, const std::string& run_folder, const std::string& rounded_to) {
  const auto in_use = std::make_shared<InUse>(self, InUse::Kind::writes);
  const auto set = std::make_shared<Dataset>(arrays_for(*self.network));
  std::shared_ptr<PythonBatches> batches;
  if (next.is_none()) {
    set->train = part_of(samples, targets);
    if (rounded_to == name_of(DType::f16)) set->train.rounded_to = DType::f16;
  } else {
    set->train.samples = type_of(samples);
    set->train.samples.shape.front() = rows;
    set->batches = batches = std::make_shared<PythonBatches>(next, self.user, batch_dtype(set->fields.target()));
  }
  if (val_samples) {
    set->validation = part_of(*val_samples, val_targets);
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

EvalReport evaluate(const PythonNetwork& self, const PackedArray& samples, const nb::object& targets) {
  std::shared_ptr<Network> network;  // with the weights of now, while Ctrl-C may leave the evaluation alone
  {
    const InUse in_use(self, InUse::Kind::reads);
    network = std::make_shared<Network>(*self.network);
  }
  const auto set = std::make_shared<Dataset>(arrays_for(*network));
  set->test = part_of(samples, targets);
  return on_errand(
      false, [network, set](Errand&) { return network->evaluate(std::move(*set)); }, "an evaluation");
}

}  // namespace gpunn::python
