#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"
#include "conformance/samples/worker.hpp"
#include "eager/op.hpp"
#include "eager/program.hpp"
#include "eager/support.hpp"
#include "ops/case.hpp"
#include "ops/evaluate.hpp"
#include "ops/op.hpp"

using namespace eager_test;
using namespace gpunn;

namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

// NaN meets NaN; the rest agrees to rounding of what was summed.
void check_close(const std::vector<double>& found, const std::vector<double>& expected, double relative) {
  REQUIRE(found.size() == expected.size());
  const double scale = std::max(1.0, largest(expected));
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i])) {
      CHECK(std::isnan(found[i]));
    } else if (std::isinf(expected[i])) {
      CHECK(found[i] == expected[i]);
    } else if (!(std::abs(found[i] - expected[i]) <= relative * scale)) {
      FAIL("element " << i << " is " << found[i] << ", expected " << expected[i]);
    }
  }
}

const Op kRelu("relu"), kAdd("add");

}  // namespace

TEST_CASE("a result lies in the caller's memory, wherever that is", "[eager]") {
  const Engine engine = cpu();
  CHECK(engine.name() == "cpu");
  CHECK(engine.on_host());
  for (const std::size_t offset : {0, 4, 12}) {
    const HostArray x = floats({5}, {-1, 2, -3, 4, NAN}, offset), y = floats({5}, {9, 9, 9, 9, 9}, offset);
    engine.run(kRelu, std::vector{x.array()}, std::vector{y.array()});
    CHECK(y.values()[1] == 2);
    CHECK(y.values()[2] == 0);
    CHECK(std::isnan(y.values()[4]));
  }
  CHECK(cpu() == engine);
}

TEST_CASE("arrays off the alignment of their elements go through temporary memory", "[eager]") {
  const Engine engine = cpu();
  const HostArray x = floats({300}, std::vector<double>(300, -2), 1), y = floats({300}, std::vector<double>(300, 9), 3);
  engine.run(Op("scale", std::vector<NamedAttribute>{{"factor", 3.0}}), std::vector{x.array()}, std::vector{y.array()});
  CHECK(y.values() == std::vector<double>(300, -6));
}

TEST_CASE("an output may lie in the memory of an input", "[eager]") {
  const Engine engine = cpu();
  const HostArray x = floats({2, 2}, {1, 2, 3, 4});
  engine.run(kAdd, std::vector{x.array(), x.array()}, std::vector{x.array()});
  CHECK(x.values() == std::vector<double>{2, 4, 6, 8});
  // A product reads its operands to the end.
  engine.run(Op("matmul"), std::vector{x.array(), x.array()}, std::vector{x.array()});
  CHECK(x.values() == std::vector<double>{28, 40, 60, 88});

  const HostArray y = floats({2, 2}, {0, 0, 0, 0});
  CHECK_THAT(message_of([&] {
               engine.run(Op("softmax_cross_entropy"),
                          std::vector{y.array(), HostArray({{DType::i32, {2}}, {0, 1}}).array()},
                          std::vector{Array{{DType::f32, {2}}, y.array().data}, y.array()});
             }),
             Contains("two of its results lie in the same memory"));
}

TEST_CASE("what does not fit is told with what was expected", "[eager]") {
  const Engine engine = cpu();
  const HostArray x = floats({2, 3}, std::vector<double>(6, 1)), y = floats({2, 2}, std::vector<double>(4, 1));
  CHECK_THAT(message_of([&] {
               engine.run(Op("matmul"), std::vector{x.array(), x.array()}, std::vector{y.array()});
             }),
             Contains("matmul: the inner dimensions"));
  CHECK_THAT(message_of([&] { engine.run(kRelu, std::vector{x.array()}, std::vector{y.array()}); }),
             Contains("relu: the output y must be f32[2, 3], is f32[2, 2]"));
  CHECK_THAT(message_of([&] { engine.run(kRelu, std::vector{x.array()}, {}); }), Contains("takes 1 outputs"));
  CHECK_THAT(message_of([&] {
               engine.run(kRelu, std::vector{Array{{DType::f64, {2}}, x.array().data}}, std::vector{y.array()});
             }),
             Contains("x must be f32 or bf16 or f16[...], is f64[2]"));
  CHECK_THAT(message_of([&] {
               engine.run(kRelu, std::vector{Array{{DType::f32, {2, 2}}, nullptr}}, std::vector{y.array()});
             }),
             Contains("has no address"));
  CHECK_THAT(message_of([] { Engine::open({.backend = "cup", .plugins = {GPUNN_CPU_PLUGIN}}); }), Contains("cup"));
}

TEST_CASE("arrays without elements need no memory", "[eager]") {
  const Engine engine = cpu();
  const Array nothing{{DType::f32, {0, 3}}, nullptr};
  engine.run(kRelu, std::vector{nothing}, std::vector{nothing});
  const HostArray w = floats({3, 2}, std::vector<double>(6, 1));
  engine.run(Op("matmul"), std::vector{nothing, w.array()}, std::vector{Array{{DType::f32, {0, 2}}, nullptr}});
}

TEST_CASE("labels that name no class make a loss NaN", "[eager]") {
  const HostArray x = floats({2, 2}, {1, 2, 3, 4}), label({{DType::i32, {2}}, {1, -100}}), loss = floats({2}, {0, 0}),
                  logp = floats({2, 2}, {0, 0, 0, 0});
  cpu().run(Op("softmax_cross_entropy"), std::vector{x.array(), label.array()},
            std::vector{loss.array(), logp.array()});
  CHECK(loss.values()[0] == Approx(std::log(1 + std::exp(-1.0))));
  CHECK(std::isnan(loss.values()[1]));
}

TEST_CASE("images that lie channels-last are used as they lie", "[eager]") {
  const Engine engine = cpu();
  const TensorType x_type{DType::f32, {2, 3, 4, 5}, Layout::channels_last};
  std::vector<double> numbers(120);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<double>(i));
  const HostArray x({x_type, numbers}), y(x_type);
  engine.run(kRelu, std::vector{x.array()}, std::vector{y.array()});
  for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(y.values()[i] == Approx(std::max(0.0, numbers[i])));

  // Images and filters of different layouts meet.
  const HostArray w = floats({4, 3, 2, 2}, std::vector<double>(48, 0.5));
  const HostArray packed_x({{DType::f32, {2, 3, 4, 5}}, numbers}), packed_y(TensorType{DType::f32, {2, 4, 3, 4}});
  const HostArray turned_y(TensorType{DType::f32, {2, 4, 3, 4}, Layout::channels_last});
  engine.run(Op("conv2d"), std::vector{packed_x.array(), w.array()}, std::vector{packed_y.array()});
  engine.run(Op("conv2d"), std::vector{x.array(), w.array()}, std::vector{turned_y.array()});
  check_close(turned_y.values(), packed_y.values(), 1e-6);
  engine.run(Op("conv2d"), std::vector{packed_x.array(), w.array()}, std::vector{turned_y.array()});
  check_close(turned_y.values(), packed_y.values(), 1e-6);
}

TEST_CASE("a second call prepares nothing and takes its temporary memory from the pool", "[eager]") {
  const Engine engine = Engine::open({.backend = GPUNN_CPU_PLUGIN, .threads = 1});
  const HostArray x = floats({8, 8, 16, 16}, std::vector<double>(16384, 1)),
                  w = floats({8, 8, 3, 3}, std::vector<double>(576, 1));
  const HostArray y(TensorType{DType::f32, {8, 8, 14, 14}});
  const HostArray odd = floats({7}, {1, 2, 3, 4, 5, 6, 7}, 1), result = floats({7}, std::vector<double>(7));
  const auto call = [&] {
    engine.run(Op("conv2d"), std::vector{x.array(), w.array()}, std::vector{y.array()});
    engine.run(kRelu, std::vector{odd.array()}, std::vector{result.array()});
  };
  call();
  const eager::PoolStatistics first = engine.pool_statistics();
  const int64_t plans = engine.plans();
  CHECK(first.requests > 0);
  for (int i = 0; i < 100; ++i) call();
  const eager::PoolStatistics later = engine.pool_statistics();
  CHECK(engine.plans() == plans);
  CHECK(later.peak_bytes == first.peak_bytes);
  CHECK(later.used_bytes == 0);
  CHECK(later.hits - first.hits == later.requests - first.requests);
  engine.trim_pool();
  CHECK(engine.pool_statistics().held_bytes == 0);
}

TEST_CASE("a call that is remembered heeds each run's addresses", "[eager]") {
  const Engine engine = cpu();
  eager::Lookup lookup;
  const HostArray a = floats({2, 2}, {1, 2, 3, 4}), b = floats({2, 2}, {2, 0, 0, 2});
  // In memory of its own, over an operand, which a product reads to the end, and off the alignment of elements.
  for (const std::size_t offset : {0, 2}) {
    const HostArray y = floats({2, 2}, {9, 9, 9, 9}, offset);
    engine.run(Op("matmul"), std::vector{a.array(), b.array()}, std::vector{y.array()}, {}, {}, &lookup);
    CHECK(y.values() == std::vector<double>{2, 4, 6, 8});
  }
  CHECK(lookup.plan != nullptr);
  const uint64_t apart = engine.scratch_bytes(Op("matmul"), std::vector{a.array(), b.array()},
                                              std::vector{floats({2, 2}, {0, 0, 0, 0}).array()}, false, &lookup);
  CHECK(engine.scratch_bytes(Op("matmul"), std::vector{a.array(), b.array()}, std::vector{a.array()}, false, &lookup) >
        apart);
  engine.run(Op("matmul"), std::vector{a.array(), b.array()}, std::vector{a.array()}, {}, {}, &lookup);
  CHECK(a.values() == std::vector<double>{2, 4, 6, 8});
}

TEST_CASE("a forked process can't use the engines of its parent", "[eager]") {
  const Engine engine = cpu();
  const HostArray x = floats({2}, {1, 2});
  engine.run(kRelu, std::vector{x.array()}, std::vector{x.array()});
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string message = message_of([&] { engine.run(kRelu, std::vector{x.array()}, std::vector{x.array()}); });
    ::_exit(message.find("was opened before this process was forked") == std::string::npos ? 1 : 0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("several threads call one engine", "[eager]") {
  const Engine engine = cpu();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&engine, &wrong, t] {
      const int64_t n = 50 + t;
      const auto count = static_cast<std::size_t>(n);
      const HostArray x = floats({n, n}, std::vector<double>(count * count, t + 1));
      const HostArray y(TensorType{DType::f32, {n, n}});
      for (int i = 0; i < 50; ++i) {
        engine.run(Op("matmul"), std::vector{x.array(), x.array()}, std::vector{y.array()});
        if (y.values().back() != static_cast<double>(n) * (t + 1) * (t + 1)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("memory for results comes from the pool and goes back to it", "[eager]") {
  const Engine engine = cpu();
  const uint64_t used = engine.pool_statistics().used_bytes;
  {
    const eager::Memory memory = engine.allocate(1000);
    CHECK(reinterpret_cast<uintptr_t>(memory.data()) % engine.alignment() == 0);
    CHECK(engine.pool_statistics().used_bytes > used);
  }
  CHECK(engine.pool_statistics().used_bytes == used);
}

// --- Streams: a worker thread is one, as on a device ---

TEST_CASE("work runs on the caller's stream, in its order", "[eager]") {
  for (const char* name : {"asynchronous", "concurrent"}) {
    INFO(name);
    const Engine engine = sample(name);
    CHECK(!engine.on_host());
    samples::Worker one, two;
    const HostArray x = floats({1000}, std::vector<double>(1000, 1));
    engine.run(kAdd, std::vector{x.array(), x.array()}, std::vector{x.array()}, {.native = &one});
    one.drain();
    // The caller's own work, behind which ours must run.
    std::atomic<bool> begun{false};
    one.post([&begun] {
      while (!begun) std::this_thread::yield();
    });
    engine.run(kAdd, std::vector{x.array(), x.array()}, std::vector{x.array()}, {.native = &one});
    engine.run(kAdd, std::vector{x.array(), x.array()}, std::vector{x.array()}, {.native = &one});
    CHECK(x.values()[0] == 2);
    begun = true;
    one.drain();
    CHECK(x.values()[999] == 8);
    // Temporary memory belongs to a stream: each has a pool.
    const HostArray a = floats({500}, std::vector<double>(500, -1), 1),
                    b = floats({500}, std::vector<double>(500, 3), 1);
    const HostArray ya = floats({500}, std::vector<double>(500)), yb = floats({500}, std::vector<double>(500));
    for (int i = 0; i < 50; ++i) {
      engine.run(kRelu, std::vector{a.array()}, std::vector{ya.array()}, {.native = &one});
      engine.run(kRelu, std::vector{b.array()}, std::vector{yb.array()}, {.native = &two});
    }
    one.drain();
    two.drain();
    CHECK(ya.values() == std::vector<double>(500, 0));
    CHECK(yb.values() == std::vector<double>(500, 3));
  }
}

TEST_CASE("a captured stream needs prepared kernels and memory of the caller", "[eager]") {
  const Engine engine = sample("concurrent");
  samples::Worker worker;
  const CallerStream plain{.native = &worker}, capturing{.native = &worker, .capturing = true};
  const HostArray x = floats({33}, std::vector<double>(33, -1), 1), y = floats({33}, std::vector<double>(33, 5));
  const auto call = [&](const CallerStream& stream, const eager::Scratch& scratch) {
    engine.run(kRelu, std::vector{x.array()}, std::vector{y.array()}, stream, scratch);
  };
  CHECK_THAT(message_of([&] { call(capturing, {}); }), Contains("run the same call once before the capture"));
  call(plain, {});
  CHECK_THAT(message_of([&] { call(capturing, {}); }), Contains("must come from the caller"));
  const uint64_t bytes = engine.scratch_bytes(kRelu, std::vector{x.array()}, std::vector{y.array()});
  CHECK(bytes >= 33 * 4);
  const eager::Memory scratch = engine.allocate(bytes, plain);
  const int64_t requests = engine.pool_statistics().requests;
  call(capturing, {scratch.data(), bytes});
  CHECK(engine.pool_statistics().requests == requests);
  CHECK_THAT(message_of([&] { call(plain, {scratch.data(), bytes - 1}); }), Contains("temporary memory"));
  worker.drain();
  CHECK(y.values() == std::vector<double>(33, 0));
}

TEST_CASE("memory that another stream reads is not given away before it has", "[eager]") {
  const Engine engine = sample("concurrent");
  samples::Worker one, two;
  std::atomic<bool> read{false};
  const HostArray x = floats({64}, std::vector<double>(64, 7)), copy(TensorType{DType::f32, {64}});
  {
    const eager::Memory memory = engine.allocate(256, {.native = &one});
    engine.copy(memory.data(), x.array().data, 256, {.native = &one});
    memory.hand_to(&two);
    two.post([&read] {
      while (!read) std::this_thread::yield();
    });
    engine.copy(copy.array().data, memory.data(), 256, {.native = &two});
    memory.released_by(&two);
  }
  const eager::Memory next = engine.allocate(256, {.native = &one});
  const HostArray other = floats({64}, std::vector<double>(64, 1));
  engine.copy(next.data(), other.array().data, 256, {.native = &one});
  read = true;
  one.drain();
  two.drain();
  CHECK(copy.values() == std::vector<double>(64, 7));
}

// --- Every op ---

TEST_CASE("each op of the catalogue gives what its reference gives", "[eager]") {
  const Engine engine = cpu();
  std::vector<ops::Case> cases = ops::one_case_each();
  for (const auto& more : {ops::half_cases(), ops::channels_last_cases()}) {
    std::set<std::pair<int32_t, DType>> seen;
    for (const ops::Case& one : more) {
      const TensorType& type = one.signature.inputs.empty() ? one.signature.outputs[0] : one.signature.inputs[0];
      if (ops::elements_of(one) < ops::kOrdinaryElements && seen.insert({one.signature.op, type.dtype}).second) {
        cases.push_back(one);
      }
    }
  }
  CHECK(cases.size() > 150);
  for (const ops::Case& test : cases) {
    const ops::OpInfo& info = ops::op_info(test.signature.op);
    INFO(info.name << " " << test.name);
    ops::Random random(7, test.name);
    const std::vector<ops::ReferenceTensor> inputs = test.inputs(random);
    const std::vector<ops::ReferenceTensor> expected = ops::run_reference(test.signature, inputs);
    std::vector<HostArray> in, out;
    for (const ops::ReferenceTensor& tensor : inputs) in.emplace_back(tensor);
    std::vector<const HostArray*> results;
    out.reserve(expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const int in_place = info.in_place[i];
      if (in_place < 0) out.emplace_back(test.signature.outputs[i]);
      results.push_back(in_place < 0 ? &out.back() : &in[static_cast<std::size_t>(in_place)]);
    }
    engine.run(eager::OpAccess::make(test.signature.op, test.signature.attrs), arrays(in), arrays(out));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const DType dtype = expected[i].type.dtype;
      const double rounding = dtype == DType::bf16 ? 2e-2 : dtype == DType::f16 ? 3e-3 : 2e-4;
      const bool half_inside = !inputs.empty() && is_half(inputs[0].type.dtype);
      std::vector<double> stored = expected[i].values;
      for (double& value : stored) value = ops::rounded(value, dtype);
      check_close(results[i]->values(), stored, half_inside ? std::max(rounding, 2e-2) : rounding);
    }
  }
}

TEST_CASE("each gradient is what differentiation makes of the references", "[eager]") {
  const Engine engine = cpu();
  int checked = 0;
  for (const ops::OpInfo* info : ops::all_ops()) {
    if (info->differentiable == nullptr) continue;
    const std::vector<ops::CaseSpec> specs = info->differentiable();
    for (const ops::CaseSpec& spec : specs) {
      const ops::Case test = ops::make_case(info->id, spec);
      INFO(info->name << " " << test.name);
      ops::Random random(5, test.name);
      const std::vector<ops::ReferenceTensor> inputs = test.inputs(random);
      const std::vector<ops::ReferenceTensor> outputs = ops::run_reference(test.signature, inputs);
      std::vector<bool> wanted;
      std::vector<TensorType> types, gradient_types;
      const Op op = eager::OpAccess::make(info->id, test.signature.attrs);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        types.push_back(inputs[i].type);
        std::vector<bool> alone(inputs.size(), false);
        alone[i] = true;
        wanted.push_back(inputs[i].type.dtype == DType::f32 &&
                         message_of([&] { op.gradient_needs(test.signature.inputs, alone); }) == "no error");
        if (wanted.back()) gradient_types.push_back(inputs[i].type);
      }
      if (gradient_types.empty()) continue;
      ops::ReferenceTensor cotangent{outputs[0].type, std::vector<double>(outputs[0].values.size())};
      for (double& value : cotangent.values) value = ops::rounded(random.uniform(-1, 1), DType::f32);

      // In float64, by the same graph.
      const eager::Program program = eager::gradient_program(info->id, test.signature.attrs, cotangent.type, types,
                                                             test.signature.outputs, wanted, gradient_types);
      ops_test::ValueMap values;
      std::size_t external = 0;
      values[program.externals[external++]] = cotangent;
      for (const ops::ReferenceTensor& one : inputs) values[program.externals[external++]] = one;
      for (const ops::ReferenceTensor& one : outputs) values[program.externals[external++]] = one;
      ops_test::evaluate(program.graph, values);

      // What the gradient does not need is not there.
      const eager::GradientNeeds needs = op.gradient_needs(types, wanted);
      std::vector<HostArray> in, out, gradients;
      for (const ops::ReferenceTensor& one : inputs) in.emplace_back(one);
      for (const ops::ReferenceTensor& one : outputs) out.emplace_back(one);
      for (const TensorType& type : gradient_types) gradients.emplace_back(type);
      std::vector<Array> in_arrays = arrays(in), out_arrays = arrays(out);
      for (std::size_t i = 0; i < in_arrays.size(); ++i) {
        if (!needs.inputs[i]) in_arrays[i].data = nullptr;
      }
      for (std::size_t i = 0; i < out_arrays.size(); ++i) {
        if (!needs.outputs[i]) out_arrays[i].data = nullptr;
      }
      engine.run_gradient(op, HostArray(cotangent).array(), in_arrays, out_arrays, wanted, arrays(gradients));
      for (const HostArray& gradient : gradients) {
        check_close(gradient.values(), values.at(program.externals[external++]).values, 1e-4);
      }
      ++checked;
    }
  }
  CHECK(checked > 40);
}

TEST_CASE("a gradient says what it reads", "[eager]") {
  const TensorType x{DType::f32, {2, 3, 8, 8}}, w{DType::f32, {4, 3, 3, 3}}, b{DType::f32, {4}};
  const eager::GradientNeeds of_both = Op("conv2d").gradient_needs(std::vector{x, w}, {true, true});
  CHECK(of_both.inputs == std::vector{true, true});
  CHECK(of_both.outputs == std::vector{false});
  CHECK(Op("conv2d").gradient_needs(std::vector{x, w}, {true, false}).inputs == std::vector{false, true});
  CHECK(kRelu.gradient_needs(std::vector{x}, {true}).outputs == std::vector{true});
  CHECK(kRelu.gradient_needs(std::vector{x}, {true}).inputs == std::vector{false});
  // A composite without a gradient of its own: by its parts.
  const std::vector<NamedAttribute> relu{{"activation", std::string("relu")}};
  const eager::GradientNeeds of_three =
      Op("conv2d_bias_activation", relu).gradient_needs(std::vector{x, w, b}, {true, true, true});
  CHECK(of_three.inputs == std::vector{true, true, false});
  CHECK(of_three.outputs == std::vector{true});
  CHECK_THAT(message_of([&] {
               Op("equal").gradient_needs(std::vector{x, x}, {true, true});
             }),
             Contains("equal: has no gradient"));
}

TEST_CASE("an overlay's kernel runs its op, its base the others", "[eager]") {
  const Engine engine = sample("obedient");
  const HostArray x = floats({2, 2}, {-1, 2, -3, 4}), y = floats({2, 2}, {0, 0, 0, 0});
  engine.run(kRelu, std::vector{x.array()}, std::vector{y.array()});
  CHECK(y.values() == std::vector<double>{0, 2, 0, 4});
  const auto explained = [&](const Op& op, const std::vector<Array>& inputs) {
    return engine.explain(op, inputs, std::vector{y.array()}).front();
  };
  CHECK_THAT(explained(kRelu, {x.array()}), Contains("cpu: RELU"));
  CHECK_THAT(explained(Op("matmul"), {x.array(), x.array()}), Contains("obedient: MATMUL"));
}
