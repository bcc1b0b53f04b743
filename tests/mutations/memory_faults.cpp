#include <cstdlib>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>

#include "mutant.hpp"

namespace mutations {

namespace {

// The compiler must not see that it is never used.
void* volatile sink = nullptr;

using Act = std::function<void(Call& call)>;

Fault before(std::string name, Act act) {
  return {.name = std::move(name), .enqueue = [act](Call& call, gpunn_error* error) {
            act(call);
            return call.run(error);
          }};
}

Fault behind(std::string name, Act act) {
  return {.name = std::move(name), .enqueue = [act](Call& call, gpunn_error* error) {
            const gpunn_status status = call.run(error);
            act(call);
            return status;
          }};
}

void* end_of(const gpunn_tensor& tensor) { return element(tensor, elements(tensor)); }

bool is_output(const Call& call, const void* data) {
  for (uint32_t i = 0; i < call.args.n_outputs; ++i) {
    if (call.out(i).data == data) return true;
  }
  return false;
}

}  // namespace

std::vector<Fault> memory_faults() {
  return {
      behind("writes-behind-the-output", [](Call& c) { c.fill(end_of(c.out(0)), 0, 4); }),
      behind("writes-a-byte-behind-the-output", [](Call& c) { c.fill(end_of(c.out(0)), 0, 1); }),
      behind("writes-60-bytes-behind-the-output",
             [](Call& c) { c.fill(static_cast<char*>(end_of(c.out(0))) + 60, 0, 4); }),
      behind("writes-before-the-output", [](Call& c) { c.fill(static_cast<char*>(c.out(0).data) - 4, 0, 4); }),
      behind("writes-behind-the-last-output", [](Call& c) { c.fill(end_of(c.out(c.args.n_outputs - 1)), 0, 4); }),
      behind("changes-an-input",
             [](Call& c) {
               for (uint32_t i = 0; i < c.args.n_inputs; ++i) {
                 if (elements(c.in(i)) > 0 && !is_output(c, c.in(i).data)) {
                   return c.fill(c.in(i).data, 0x11, size_of(c.in(i)));
                 }
               }
             }),
      behind("writes-behind-an-input",
             [](Call& c) {
               if (c.args.n_inputs > 0) c.fill(end_of(c.in(0)), 0x11, 4);
             }),
      {.name = "writes-behind-the-workspace",
       .enqueue =
           [](Call& call, gpunn_error* error) {
             const gpunn_status status = call.run(error);
             call.fill(static_cast<char*>(call.args.workspace) + call.args.workspace_bytes, 0, 4);
             return status;
           },
       .query = [](const gpunn_op_desc&, gpunn_op_support& support) { support.workspace_bytes += 64; }},
      {.name = "believes-its-workspace-to-be-zero",
       .enqueue =
           [](Call& call, gpunn_error* error) {
             const gpunn_status status = call.run(error);
             const auto* words = reinterpret_cast<const uint8_t*>(static_cast<char*>(call.args.workspace) +
                                                                  call.args.workspace_bytes - 64);
             real().stream_sync(call.stream, nullptr);
             if (*words != 0 && elements(call.out(0)) > 0) call.fill(call.out(0).data, *words, size_of(call.out(0)));
             return status;
           },
       .query = [](const gpunn_op_desc&, gpunn_op_support& support) { support.workspace_bytes += 64; },
       .host_only = true},
      {.name = "adds-to-what-the-output-holds",
       .enqueue =
           [](Call& call, gpunn_error* error) {
             const gpunn_tensor& y = call.out(0);
             if (y.dtype != GPUNN_F32 || elements(y) == 0 || call.kernel.op == 0) return call.run(error);
             const float held = *static_cast<float*>(y.data);
             const gpunn_status status = call.run(error);
             real().stream_sync(call.stream, nullptr);
             if (!is_output(call, call.args.n_inputs > 0 ? call.in(0).data : nullptr))
               *static_cast<float*>(y.data) += held;
             return status;
           },
       .host_only = true},
      before("leaks-64-bytes-a-call", [](Call&) { sink = std::malloc(64); }),
      before("leaks-a-page-a-call",
             [](Call&) { sink = mmap(nullptr, 131072, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }),
      {.name = "leaks-a-kernel", .create = [](const gpunn_op_desc&) { sink = std::malloc(256); }},
      {.name = "leaks-an-answer", .query = [](const gpunn_op_desc&, gpunn_op_support&) { sink = std::malloc(64); }},
      {.name = "leaves-a-file-open",
       .create = [](const gpunn_op_desc&) { (void)!open("/dev/null", O_RDONLY | O_CLOEXEC); }},
      before("allocates-in-enqueue",
             [](Call&) {
               sink = std::malloc(1000);
               std::free(sink);
             }),
      before("makes-a-vector-in-enqueue",
             [](Call&) {
               std::vector<float> scratch(100, 1.0F);
               sink = scratch.data();
             }),
      before("takes-new-memory-in-enqueue",
             [](Call&) {
               sink = ::operator new(64);
               ::operator delete(sink);
             }),
      before("waits-in-enqueue", [](Call& c) { real().stream_sync(c.stream, nullptr); }),
  };
}

}  // namespace mutations
