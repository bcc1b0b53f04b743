// A call on tensors of PyTorch. It is built without PyTorch's headers: the functions of PyTorch come from Python, and
// each is called without building arguments anew.
#include <gpunn/error.hpp>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "calls/call.hpp"
#include "calls/eager_arrays.hpp"

namespace gpunn::python {

namespace {

constexpr std::size_t kMostArrays = 64;

// The functions of PyTorch that a call uses.
struct TorchFunctions {
  nb::object empty;      // (sizes, strides, dtype): a tensor on the device
  nb::object scratch;    // (bytes): an u8 tensor on the device
  nb::object stream;     // (device): the handle of the current stream
  nb::object capturing;  // (): whether the current stream is captured
};

// A tensor that a call makes.
struct Fresh {
  nb::object sizes, strides, dtype;
};

class TensorCall {
 public:
  // `places`: for each array of the call that is given the place of its tensor, or -1 where it has no address.
  // `results`: for each result the place of a fresh tensor, or -1 for None. `device`: -1 is the host.
  TensorCall(nb::object call, TorchFunctions torch, int device, nb::handle places, nb::handle fresh, nb::handle results)
      : owner_(std::move(call)),
        call_(&nb::cast<const Call&>(owner_)),
        torch_(std::move(torch)),
        device_(nb::int_(device)),
        on_host_(device < 0),
        data_ptr_(nb::steal(PyUnicode_InternFromString("data_ptr"))) {
    for (nb::handle one : places) places_.push_back(nb::cast<int>(one));
    for (nb::handle one : fresh) fresh_.push_back({one[0], one[1], one[2]});
    for (nb::handle one : results) results_.push_back(nb::cast<int>(one));
    if (call_->size() > kMostArrays) throw Error("an op takes at most 64 arrays", ExitCode::usage);
  }

  // The addresses are those of `tensors`, of the fresh tensors and of `last`, in this order.
  nb::object run(nb::handle tensors, nb::handle last) const {
    std::array<void*, kMostArrays> addresses{};
    std::size_t count = 0;
    const auto add = [&](void* address) {
      if (count == kMostArrays) throw Error("an op takes at most 64 arrays", ExitCode::usage);
      addresses[count++] = address;
    };
    for (const int place : places_) {
      if (place < 0) {
        add(nullptr);
        continue;
      }
      PyObject* const tensor = PyTuple_GetItem(tensors.ptr(), place);
      if (tensor == nullptr) nb::raise_python_error();
      add(address_of(tensor));
    }
    std::array<nb::object, kMostArrays> made;
    for (std::size_t i = 0; i < fresh_.size(); ++i) {
      made[i] = torch_.empty(fresh_[i].sizes, fresh_[i].strides, fresh_[i].dtype);
      add(address_of(made[i]));
    }
    if (!last.is_none()) add(address_of(last));
    enqueue({addresses.data(), count});
    return tuple_of(made);
  }

 private:
  void* address_of(nb::handle tensor) const {
    const nb::object number = tensor.attr(data_ptr_)();
    void* const address = PyLong_AsVoidPtr(number.ptr());
    if (address == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
    return address;
  }

  void enqueue(std::span<void* const> addresses) const {
    if (on_host_) {
      call_->run({}, {}, addresses);
      return;
    }
    const nb::object native = torch_.stream(device_);
    const eager::CallerStream stream{.native = pointer(nb::cast<uintptr_t>(native)),
                                     .capturing = torch_.capturing().ptr() == Py_True};
    eager::Scratch scratch{.bytes = call_->scratch_bytes(stream.capturing, addresses)};
    nb::object memory;  // PyTorch's allocator gives it to later work on the stream
    if (scratch.bytes > 0) {
      memory = torch_.scratch(scratch.bytes);
      scratch.data = address_of(memory);
    }
    call_->run(stream, scratch, addresses);
  }

  nb::object tuple_of(const std::array<nb::object, kMostArrays>& made) const {
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(results_.size())));
    for (std::size_t i = 0; i < results_.size(); ++i) {
      nb::object one = results_[i] < 0 ? nb::none() : made[static_cast<std::size_t>(results_[i])];
      PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), one.release().ptr());
    }
    return tuple;
  }

  nb::object owner_;  // of `call_`
  const Call* call_;
  TorchFunctions torch_;
  nb::object device_;
  bool on_host_;
  nb::object data_ptr_;  // the method's name
  std::vector<int> places_;
  std::vector<Fresh> fresh_;
  std::vector<int> results_;
};

}  // namespace

void bind_tensor_call(nb::module_& module) {
  nb::class_<TensorCall>(module, "TensorCall", "A call on tensors of PyTorch.")
      .def(
          "__init__",
          [](TensorCall* self, nb::object call, int device, nb::handle places, nb::handle fresh, nb::handle results,
             nb::object empty, nb::object scratch, nb::object stream, nb::object capturing) {
            new (self) TensorCall(std::move(call),
                                  {std::move(empty), std::move(scratch), std::move(stream), std::move(capturing)},
                                  device, places, fresh, results);
          },
          nb::arg("call"), nb::arg("device"), nb::arg("places"), nb::arg("fresh"), nb::arg("results"), nb::arg("empty"),
          nb::arg("scratch"), nb::arg("stream").none(), nb::arg("capturing").none())
      .def("run", &TensorCall::run, nb::arg("tensors"), nb::arg("last").none(),
           "Makes the fresh tensors and returns the results as a tuple.");
}

}  // namespace gpunn::python
