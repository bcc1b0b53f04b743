#include <algorithm>

#include "mutant.hpp"

namespace mutations {

namespace {

// 0.747 as f32, an odd number as anything else.
constexpr uint8_t kWrong = 0x3F;

// One element of the first output that has it, wrong.
void spoil(const Call& call, int64_t index) {
  if (call.args.n_outputs == 0) return;
  const gpunn_tensor& y = call.out(0);
  if (index < 0 || index >= elements(y)) return;
  call.fill(element(y, index), kWrong, size_of(y));
}

using When = std::function<bool(const Call& call)>;
using Where = std::function<int64_t(const Call& call)>;

Fault wrong(std::string name, Where where, When when = {}) {
  return {.name = std::move(name), .enqueue = [=](Call& call, gpunn_error* error) {
            const gpunn_status status = call.run(error);
            if (status == GPUNN_OK && (!when || when(call))) spoil(call, where(call));
            return status;
          }};
}

int64_t last(const Call& call) { return elements(call.out(0)) - 1; }
int64_t first(const Call&) { return 0; }

bool has_dimension(const Call& call, const std::function<bool(int64_t)>& test) {
  for (uint32_t i = 0; i < call.args.n_inputs; ++i) {
    for (int32_t d = 0; d < call.in(i).rank; ++d) {
      if (test(call.in(i).dim[d])) return true;
    }
  }
  return false;
}

int32_t rank(const Call& call) {
  int32_t most = 0;
  for (uint32_t i = 0; i < call.args.n_inputs; ++i) most = std::max(most, call.in(i).rank);
  return most;
}

}  // namespace

std::vector<Fault> element_faults() {
  std::vector<Fault> faults{
      wrong("first-element", first),
      wrong("last-element", last),
      wrong("middle-element", [](const Call& c) { return elements(c.out(0)) / 2; }),
      wrong("element-4096", [](const Call&) { return int64_t{4096}; }),
      wrong("last-of-a-part-vector", last, [](const Call& c) { return elements(c.out(0)) % 8 != 0; }),
      wrong("dimension-above-1024", last,
            [](const Call& c) { return has_dimension(c, [](int64_t n) { return n > 1024; }); }),
      wrong("dimension-above-2048", last,
            [](const Call& c) { return has_dimension(c, [](int64_t n) { return n > 2048; }); }),
      wrong("dimension-above-65535", last,
            [](const Call& c) { return has_dimension(c, [](int64_t n) { return n > 65535; }); }),
      wrong("dimension-of-one", last,
            [](const Call& c) { return elements(c.out(0)) > 1 && has_dimension(c, [](int64_t n) { return n == 1; }); }),
      wrong("odd-dimension", last,
            [](const Call& c) { return has_dimension(c, [](int64_t n) { return n > 2 && n % 2 != 0; }); }),
      wrong("rank-5", last, [](const Call& c) { return rank(c) >= 5; }),
      wrong("empty-sum", first,
            [](const Call& c) { return elements(c.out(0)) > 0 && has_dimension(c, [](int64_t n) { return n == 0; }); }),
      wrong("y-in-the-memory-of-an-input", last,
            [](const Call& c) {
              for (uint32_t i = 0; i < c.args.n_inputs; ++i) {
                if (c.in(i).data == c.out(0).data) return true;
              }
              return false;
            }),
      wrong("one-tensor-as-two-inputs", last,
            [](const Call& c) {
              for (uint32_t i = 1; i < c.args.n_inputs; ++i) {
                if (c.in(i).data == c.in(0).data) return true;
              }
              return false;
            }),
      {.name = "unwritten-output", .enqueue = [](Call&, gpunn_error*) { return GPUNN_OK; }},
      {.name = "last-output-unwritten",
       .enqueue =
           [](Call& call, gpunn_error* error) {
             const gpunn_status status = call.run(error);
             const gpunn_tensor& y = call.out(call.args.n_outputs - 1);
             call.fill(y.data, 0, size_of(y) * static_cast<uint64_t>(elements(y)));
             return status;
           }},
      {.name = "zero-output",
       .enqueue =
           [](Call& call, gpunn_error* error) {
             const gpunn_status status = call.run(error);
             for (uint32_t i = 0; i < call.args.n_outputs; ++i) {
               call.fill(call.out(i).data, 0, size_of(call.out(i)) * static_cast<uint64_t>(elements(call.out(i))));
             }
             return status;
           }},
  };
  // A tail that is forgotten where the length leaves one remainder.
  for (int64_t remainder = 0; remainder < 16; ++remainder) {
    faults.push_back(wrong("remainder-" + std::to_string(remainder), last, [remainder](const Call& c) {
      return has_dimension(c, [remainder](int64_t n) { return n > 16 && n % 16 == remainder; });
    }));
  }
  return faults;
}

}  // namespace mutations
