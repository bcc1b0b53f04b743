#include <cstring>

#include "mutant.hpp"

namespace mutations {

namespace {

using When = std::function<bool(Call& call)>;

int64_t freed_count = 0, freed_at_first_call = 0;

// The first element is wrong when something has happened.
Fault wrong_when(std::string name, When when) {
  return {.name = std::move(name), .enqueue = [when](Call& call, gpunn_error* error) {
            const gpunn_status status = call.run(error);
            if (status == GPUNN_OK && elements(call.out(0)) > 0 && when(call)) {
              call.fill(call.out(0).data, 0x3F, size_of(call.out(0)));
            }
            return status;
          }};
}

// A bit of the first number: within every tolerance, but not the same as before.
Fault flips_when(std::string name, When when) {
  return {.name = std::move(name),
          .enqueue =
              [when](Call& call, gpunn_error* error) {
                const gpunn_status status = call.run(error);
                real().stream_sync(call.stream, nullptr);
                if (status == GPUNN_OK && call.out(0).dtype == GPUNN_F32 && elements(call.out(0)) > 0 && when(call)) {
                  *static_cast<uint8_t*>(call.out(0).data) ^= 1;
                }
                return status;
              },
          .host_only = true};
}

std::vector<std::vector<std::byte>> outputs_of(const Call& call) {
  std::vector<std::vector<std::byte>> kept;
  for (uint32_t i = 0; i < call.args.n_outputs; ++i) {
    const auto* begin = static_cast<const std::byte*>(call.out(i).data);
    kept.emplace_back(begin, begin + size_of(call.out(i)) * static_cast<uint64_t>(elements(call.out(i))));
  }
  return kept;
}

}  // namespace

std::vector<Fault> state_faults() {
  return {
      wrong_when("wrong-at-the-second-call", [](Call& c) { return c.kernel.calls == 2; }),
      wrong_when("wrong-from-the-third-call-on", [](Call& c) { return c.kernel.calls >= 3; }),
      wrong_when("wrong-from-the-thirtieth-call-on", [](Call& c) { return c.kernel.calls >= 30; }),
      wrong_when("wrong-beside-a-younger-kernel", [](Call& c) { return c.kernel.number != created() - 1; }),
      wrong_when("wrong-beside-sixteen-kernels", [](Call&) { return alive() >= 16; }),
      wrong_when("every-second-kernel-is-wrong", [](Call& c) { return c.kernel.number % 2 == 1; }),
      wrong_when("every-tenth-kernel-is-wrong", [](Call& c) { return c.kernel.number % 10 == 9; }),
      wrong_when("wrong-when-kernels-alternate",
                 [last = static_cast<Kernel*>(nullptr)](Call& c) mutable {
                   const bool other = last != nullptr && last != &c.kernel;
                   last = &c.kernel;
                   return other && alive() > 1;
                 }),
      {.name = "wrong-when-a-kernel-was-freed",
       .enqueue =
           [](Call& call, gpunn_error* error) {
             if (call.kernel.calls == 1) freed_at_first_call = freed_count;
             const gpunn_status status = call.run(error);
             if (freed_count != freed_at_first_call && elements(call.out(0)) > 0) {
               call.fill(call.out(0).data, 0x3F, size_of(call.out(0)));
             }
             return status;
           },
       .freed = [] { ++freed_count; }},
      {.name = "gives-the-first-outputs-again",
       .enqueue =
           [](Call& call, gpunn_error* error) {
             const gpunn_status status = call.run(error);
             real().stream_sync(call.stream, nullptr);
             if (call.kernel.kept.empty()) {
               call.kernel.kept = outputs_of(call);
             } else {
               for (uint32_t i = 0; i < call.args.n_outputs; ++i) {
                 std::memcpy(call.out(i).data, call.kernel.kept[i].data(), call.kernel.kept[i].size());
               }
             }
             return status;
           },
       .host_only = true},
      flips_when("other-bits-at-every-second-call", [](Call& c) { return c.kernel.calls % 2 == 0; }),
      flips_when("other-bits-at-every-seventh-call", [calls = 0](Call&) mutable { return ++calls % 7 == 0; }),
      flips_when("other-bits-at-other-addresses",
                 [](Call& c) { return (reinterpret_cast<uintptr_t>(c.out(0).data) / 64) % 2 != 0; }),
      flips_when("other-bits-of-another-kernel", [](Call& c) { return c.kernel.number % 3 == 2; }),
  };
}

}  // namespace mutations
