#include <cfenv>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "mutant.hpp"

namespace mutations {

namespace {

using Act = std::function<void(Call& call)>;

Fault before(std::string name, Act act) {
  return {.name = std::move(name), .enqueue = [act](Call& call, gpunn_error* error) {
            act(call);
            return call.run(error);
          }};
}

}  // namespace

std::vector<Fault> conduct_faults() {
  return {
#if defined(__x86_64__)
    before("flushes-subnormal-numbers", [](Call&) { _mm_setcsr(_mm_getcsr() | 0x8040U); }),
        before("flushes-results-alone", [](Call&) { _mm_setcsr(_mm_getcsr() | 0x8000U); }),
#endif
        before("rounds-towards-zero", [](Call&) { std::fesetround(FE_TOWARDZERO); }),
        before("crashes-on-long-dimensions",
               [](Call& c) {
                 if (longest(c) > 2048) std::raise(SIGSEGV);
               }),
        before("crashes-on-empty-tensors",
               [](Call& c) {
                 for (uint32_t i = 0; i < c.args.n_inputs; ++i) {
                   if (elements(c.in(i)) == 0) std::abort();
                 }
               }),
        before("hangs-on-long-dimensions",
               [](Call& c) {
                 while (longest(c) > 65535) pause();
               }),
        before("ends-the-process",
               [](Call& c) {
                 if (c.kernel.calls == 5) _exit(0);
               }),
        {.name = "fails-at-the-fourth-call",
         .enqueue = [](Call& call,
                       gpunn_error* error) { return call.kernel.calls == 4 ? GPUNN_INTERNAL : call.run(error); }},
        {.name = "reports-a-status-that-there-is-not", .enqueue = [](Call& call, gpunn_error* error) {
           call.run(error);
           return static_cast<gpunn_status>(77);
         }},
  };
}

}  // namespace mutations
