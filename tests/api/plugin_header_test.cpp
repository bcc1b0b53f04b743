// plugin.hpp: what a plugin author's class becomes in the C table.

#include <gpunn/plugin.hpp>

#include <vector>

#include "catch.hpp"

namespace {

using namespace gpunn::plugin;

constexpr int32_t kOp = GPUNN_OP_RELU;

// What the backend below does, set by each test.
struct Behaviour {
  std::function<void()> in_probe = [] {};
  std::vector<std::pair<std::string, Support>> factories;  // name, answer
  gpunn_device_options seen_options{};
  std::string created;  // the factory whose kernel was made
};

Behaviour& behaviour() {
  static Behaviour value;
  return value;
}

class TestDevice final : public HostDevice {
 public:
  TestDevice() {
    for (const auto& [name, support] : behaviour().factories) {
      add(kOp, {.query = [answer = support](const OpDesc&) { return answer; },
                .create =
                    [label = name](const OpDesc&) {
                      behaviour().created = label;
                      return make_kernel([](Stream&, const OpArgs& args) { *args.out<float>(0) = *args.in<float>(0); });
                    }});
    }
  }
};

class TestBackend final : public Backend {
 public:
  const char* name() const override { return "test"; }
  const char* version() const override { return "3"; }
  const char* base() const override { return "below"; }
  int priority() const override { return 7; }
  int probe() override {
    behaviour().in_probe();
    return 4;
  }
  std::unique_ptr<Device> open(const gpunn_device_options& options) override {
    behaviour().seen_options = options;
    return std::make_unique<TestDevice>();
  }
};

const gpunn_plugin& table() { return *export_backend<TestBackend>(GPUNN_ABI_MAJOR, GPUNN_ABI_MINOR); }

gpunn_error empty_error() {
  gpunn_error error{};
  error.struct_size = sizeof(error);
  return error;
}

// A device, closed afterwards.
class OpenDevice {
 public:
  OpenDevice() {
    gpunn_device_options options{};
    options.struct_size = sizeof(options);
    gpunn_error error = empty_error();
    REQUIRE(table().device_open(&options, &device_, &error) == GPUNN_OK);
  }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;
  ~OpenDevice() { table().device_close(device_); }
  gpunn_device* get() const { return device_; }

 private:
  gpunn_device* device_ = nullptr;
};

// x and y of a RELU, both scalars.
const gpunn_tensor* const* one_scalar() {
  static const gpunn_tensor scalar = [] {
    gpunn_tensor tensor{};
    tensor.struct_size = sizeof(tensor);
    tensor.dtype = GPUNN_F32;
    return tensor;
  }();
  static const gpunn_tensor* const list[] = {&scalar};
  return list;
}

gpunn_op_desc description(uint32_t flags = 0) {
  gpunn_op_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.op = kOp;
  desc.flags = flags;
  desc.n_inputs = desc.n_outputs = 1;
  desc.inputs = desc.outputs = one_scalar();
  return desc;
}

gpunn_op_support query(gpunn_device* device, uint32_t flags = 0) {
  gpunn_op_support support{};
  support.struct_size = sizeof(support);
  gpunn_error error = empty_error();
  const gpunn_op_desc desc = description(flags);
  REQUIRE(table().op_query(device, &desc, &support, &error) == GPUNN_OK);
  return support;
}

// The name of the factory that op_create takes; empty: none.
std::string created(gpunn_device* device, uint32_t flags = 0) {
  behaviour().created.clear();
  gpunn_kernel* kernel = nullptr;
  gpunn_error error = empty_error();
  const gpunn_op_desc desc = description(flags);
  if (table().op_create(device, &desc, &kernel, &error) == GPUNN_OK) table().op_free(kernel);
  return behaviour().created;
}

Support not_deterministic(int score) {
  Support support = Support::yes(0, score);
  support.flags = GPUNN_OP_CAPTURABLE;
  return support;
}

}  // namespace

TEST_CASE("a host of another major version gets no table", "[api]") {
  CHECK(export_backend<TestBackend>(0, 0) == nullptr);
  CHECK(export_backend<TestBackend>(2, 0) == nullptr);
  CHECK(export_backend<TestBackend>(1, 99) != nullptr);
}

TEST_CASE("the table holds what the class says", "[api]") {
  const gpunn_plugin& t = table();
  CHECK(t.struct_size == sizeof(gpunn_plugin));
  CHECK(t.abi_major == 1);
  CHECK(std::string(t.name) == "test");
  CHECK(std::string(t.version) == "3");
  CHECK(std::string(t.base) == "below");
  CHECK(t.priority == 7);
  int32_t count = 0;
  gpunn_error error = empty_error();
  CHECK(t.probe(&count, &error) == GPUNN_OK);
  CHECK(count == 4);
  // No capture was promised, so none is offered.
  CHECK(t.capture_begin == nullptr);
  CHECK(t.graph_free == nullptr);
}

TEST_CASE("an exception becomes a status and its text", "[api]") {
  struct Case {
    std::function<void()> action;
    gpunn_status status;
    const char* text;
  };
  const auto expect = [](const Case& expected) {
    behaviour().in_probe = expected.action;
    int32_t count = 0;
    gpunn_error error = empty_error();
    const gpunn_status status = table().probe(&count, &error);
    behaviour().in_probe = [] {};
    CHECK(status == expected.status);
    CHECK(error.status == expected.status);
    CHECK(std::string(error.message) == expected.text);
  };
  expect({[] { throw Failure(GPUNN_NO_DEVICE, "no driver"); }, GPUNN_NO_DEVICE, "no driver"});
  expect({[] { throw std::runtime_error("broken"); }, GPUNN_INTERNAL, "broken"});
  expect({[] { throw std::bad_alloc(); }, GPUNN_OUT_OF_MEMORY, "out of host memory"});
  expect({[] { throw 42; }, GPUNN_INTERNAL, "an exception of unknown type"});
  expect({[] { throw std::runtime_error(""); }, GPUNN_INTERNAL, ""});
}

TEST_CASE("a message is cut to what the host has room for", "[api]") {
  behaviour().in_probe = [] { throw std::runtime_error(std::string(5000, 'm')); };
  int32_t count = 0;
  gpunn_error whole = empty_error();
  CHECK(table().probe(&count, &whole) == GPUNN_INTERNAL);
  CHECK(std::strlen(whole.message) == sizeof(whole.message) - 1);

  // An older host with a smaller struct: not a byte beyond its size is touched.
  gpunn_error small = empty_error();
  std::memset(small.message, '#', sizeof(small.message));
  small.struct_size = offsetof(gpunn_error, message) + 10;
  CHECK(table().probe(&count, &small) == GPUNN_INTERNAL);
  CHECK(std::string(small.message) == "mmmmmmmmm");
  CHECK(small.message[10] == '#');

  gpunn_error none = empty_error();
  std::memset(none.message, '#', sizeof(none.message));
  none.struct_size = offsetof(gpunn_error, message);
  CHECK(table().probe(&count, &none) == GPUNN_INTERNAL);
  CHECK(none.message[0] == '#');
  CHECK(table().probe(&count, nullptr) == GPUNN_INTERNAL);
  behaviour().in_probe = [] {};
}

TEST_CASE("structs of an older host are read and written within their size", "[api]") {
  // An option struct that ends before `log`.
  gpunn_device_options options{};
  options.struct_size = offsetof(gpunn_device_options, log);
  options.index = 1;
  options.host_threads = 3;
  options.log = reinterpret_cast<gpunn_log_fn>(uintptr_t{0xdead});
  gpunn_device* device = nullptr;
  gpunn_error error = empty_error();
  REQUIRE(table().device_open(&options, &device, &error) == GPUNN_OK);
  CHECK(behaviour().seen_options.host_threads == 3);
  CHECK(behaviour().seen_options.log == nullptr);

  gpunn_device_info info{};
  std::memset(&info, '#', sizeof(info));
  info.struct_size = offsetof(gpunn_device_info, total_bytes);
  REQUIRE(table().device_info(device, &info, &error) == GPUNN_OK);
  CHECK(info.struct_size == offsetof(gpunn_device_info, total_bytes));
  CHECK(std::string(info.memory_domain) == "host");
  CHECK(info.alignment == 0x2323232323232323U);

  gpunn_op_support support{};
  std::memset(&support, '#', sizeof(support));
  support.struct_size = offsetof(gpunn_op_support, reason);
  const gpunn_op_desc desc = description();
  REQUIRE(table().op_query(device, &desc, &support, &error) == GPUNN_OK);
  CHECK(support.reason[0] == '#');
  table().device_close(device);
}

TEST_CASE("structs of a newer host are read up to what is known", "[api]") {
  struct NewerOptions {
    gpunn_device_options known;
    void* later[4];
  };
  NewerOptions options{};
  options.known.struct_size = sizeof(options);
  options.known.host_threads = 5;
  gpunn_device* device = nullptr;
  gpunn_error error = empty_error();
  REQUIRE(table().device_open(&options.known, &device, &error) == GPUNN_OK);
  CHECK(behaviour().seen_options.host_threads == 5);
  CHECK(behaviour().seen_options.struct_size == sizeof(gpunn_device_options));
  table().device_close(device);
}

TEST_CASE("the kernel of the largest score is taken, the first of equals", "[api]") {
  behaviour().factories = {{"small", Support::yes(8, 1)},
                           {"large", Support::yes(16, 5)},
                           {"equal", Support::yes(32, 5)},
                           {"refused", Support::no("never")}};
  const OpenDevice device;
  const gpunn_op_support support = query(device.get());
  CHECK(support.score == 5);
  CHECK(support.workspace_bytes == 16);
  CHECK(support.flags == (GPUNN_OP_DETERMINISTIC | GPUNN_OP_CAPTURABLE));
  CHECK(created(device.get()) == "large");
}

TEST_CASE("only deterministic kernels are taken where that is required", "[api]") {
  behaviour().factories = {{"fast", not_deterministic(9)}, {"steady", Support::yes(0, 1)}};
  {
    const OpenDevice device;
    CHECK(created(device.get()) == "fast");
    CHECK(query(device.get(), GPUNN_OP_REQUIRE_DETERMINISTIC).score == 1);
    CHECK(created(device.get(), GPUNN_OP_REQUIRE_DETERMINISTIC) == "steady");
  }
  behaviour().factories = {{"fast", not_deterministic(9)}};
  const OpenDevice device;
  const gpunn_op_support support = query(device.get(), GPUNN_OP_REQUIRE_DETERMINISTIC);
  CHECK(support.score == 0);
  CHECK(std::string(support.reason) == "no deterministic kernel at this shape");
  CHECK(created(device.get(), GPUNN_OP_REQUIRE_DETERMINISTIC).empty());
}

TEST_CASE("an op that is not served says why", "[api]") {
  behaviour().factories = {};
  {
    const OpenDevice device;
    CHECK(std::string(query(device.get()).reason) == "this backend has no such op");
    gpunn_kernel* kernel = nullptr;
    gpunn_error error = empty_error();
    const gpunn_op_desc desc = description();
    CHECK(table().op_create(device.get(), &desc, &kernel, &error) == GPUNN_UNSUPPORTED);
    CHECK(kernel == nullptr);
  }
  behaviour().factories = {{"picky", Support::no(std::string(1000, 'w'))}};
  const OpenDevice device;
  const gpunn_op_support support = query(device.get());
  CHECK(support.score == 0);
  CHECK(std::strlen(support.reason) == sizeof(support.reason) - 1);
}

TEST_CASE("no kernel is asked about what the op's row does not allow", "[api]") {
  behaviour().factories = {{"any", Support::yes()}};
  const OpenDevice device;
  gpunn_tensor x = *one_scalar()[0], y = x;
  x.rank = y.rank = 2;
  x.dim[0] = y.dim[0] = 2;
  x.dim[1] = y.dim[1] = 3;
  x.stride[0] = y.stride[0] = 3;
  x.stride[1] = y.stride[1] = 1;
  const gpunn_tensor* inputs[] = {&x, &x};
  const gpunn_tensor* outputs[] = {&y};
  gpunn_op_desc desc = description();
  desc.inputs = inputs;
  desc.outputs = outputs;
  const auto reason = [&] {
    gpunn_op_support support{};
    support.struct_size = sizeof(support);
    gpunn_error error = empty_error();
    REQUIRE(table().op_query(device.get(), &desc, &support, &error) == GPUNN_OK);
    CHECK((support.score > 0) == (support.reason[0] == '\0'));
    return std::string(support.reason);
  };
  CHECK(reason().empty());

  desc.n_inputs = 2;
  CHECK(reason() == "takes 1 inputs, not 2");
  desc.n_inputs = 1;
  desc.n_outputs = 0;
  CHECK(reason() == "has 1 outputs, not 0");
  desc.n_outputs = 1;
  inputs[0] = nullptr;
  CHECK(reason() == "x is missing");
  inputs[0] = &x;
  x.dtype = GPUNN_I32;
  CHECK(reason() == "x must be f32 or bf16 or f16[...], is i32[2, 3]");
  x.dtype = GPUNN_F32;
  y.dim[1] = 4;
  y.stride[0] = 4;
  CHECK(reason() == "y must be f32[2, 3], is f32[2, 4]");
  y = x;
  y.stride[0] = 5;
  CHECK(reason() == "y must be packed row-major");
  y = x;
  x.rank = GPUNN_MAX_RANK + 1;
  CHECK(reason() == "x has rank 9, not 0 to 8");
  x.rank = 2;
  x.dim[0] = -1;
  CHECK_THAT(reason(), Contains("negative"));
  x.dim[0] = x.dim[1] = int64_t{1} << 40;
  CHECK_THAT(reason(), Contains("beyond any memory"));

  desc.op = GPUNN_OP_SCALE;
  CHECK(reason() == "this backend has no such op");
}

TEST_CASE("a query may throw its refusal", "[api]") {
  class Refusing final : public HostDevice {
   public:
    Refusing() {
      add(kOp, {.query = [](const OpDesc&) -> Support { throw Refusal("not today"); },
                .create = [](const OpDesc&) -> std::unique_ptr<Kernel> { return nullptr; },
                .name = "named"});
    }
  };
  const Refusing device;
  const gpunn_op_desc desc = description();
  const Device::Choice choice = device.choose(OpDesc(desc));
  CHECK(choice.factory == nullptr);
  CHECK(choice.support.reason == "not today");
  CHECK(device.kernels(OpDesc(desc)).empty());
}

TEST_CASE("a kernel runs through the table", "[api]") {
  behaviour().factories = {{"only", Support::yes()}};
  const OpenDevice device;
  gpunn_error error = empty_error();
  gpunn_stream* stream = nullptr;
  REQUIRE(table().stream_create(device.get(), &stream, &error) == GPUNN_OK);
  gpunn_kernel* kernel = nullptr;
  const gpunn_op_desc desc = description();
  REQUIRE(table().op_create(device.get(), &desc, &kernel, &error) == GPUNN_OK);

  float x = 4.5F;
  float y = 0;
  gpunn_tensor in{};
  in.struct_size = sizeof(in);
  in.data = &x;
  gpunn_tensor out = in;
  out.data = &y;
  const gpunn_tensor* inputs[] = {&in};
  const gpunn_tensor* outputs[] = {&out};
  gpunn_op_args args{};
  args.struct_size = sizeof(args);
  args.n_inputs = args.n_outputs = 1;
  args.inputs = inputs;
  args.outputs = outputs;
  CHECK(table().op_enqueue(kernel, stream, &args, &error) == GPUNN_OK);
  CHECK(y == 4.5F);
  table().op_free(kernel);
  table().stream_destroy(stream);
}

TEST_CASE("host memory is aligned and refuses what can't be", "[api]") {
  behaviour().factories = {};
  const OpenDevice device;
  gpunn_error error = empty_error();
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{65}, uint64_t{4097}}) {
    void* data = nullptr;
    REQUIRE(table().memory_alloc(device.get(), GPUNN_MEMORY_DEVICE, bytes, &data, &error) == GPUNN_OK);
    CHECK(data != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(data) % HostDevice::kAlignment == 0);
    table().memory_free(device.get(), GPUNN_MEMORY_DEVICE, data);
  }
  void* data = nullptr;
  CHECK(table().memory_alloc(device.get(), GPUNN_MEMORY_DEVICE, UINT64_MAX, &data, &error) == GPUNN_OUT_OF_MEMORY);
  CHECK_THAT(std::string(error.message), Contains("18446744073709551615 bytes"));
}

TEST_CASE("channels-last images are told from packed ones", "[api]") {
  gpunn_tensor image{};
  image.rank = 4;
  const int64_t dims[] = {2, 3, 4, 5};
  const int64_t strides[] = {60, 1, 15, 3};
  std::copy(std::begin(dims), std::end(dims), image.dim);
  std::copy(std::begin(strides), std::end(strides), image.stride);
  CHECK(is_channels_last(image));
  CHECK_FALSE(is_packed(image));
  image.stride[0] = 61;
  CHECK_FALSE(is_channels_last(image));
  // One pixel: both at once.
  image.dim[2] = image.dim[3] = 1;
  image.stride[0] = 3;
  CHECK(is_channels_last(image));
  CHECK(is_packed(image));
  image.rank = 3;
  CHECK_FALSE(is_channels_last(image));
}

TEST_CASE("a kernel is asked about channels-last images where it takes them, or the op does not care", "[api]") {
  gpunn_tensor image{};
  image.struct_size = sizeof(image);
  image.dtype = GPUNN_F32;
  image.rank = 4;
  const int64_t dims[] = {2, 3, 4, 5};
  const int64_t strides[] = {60, 1, 15, 3};
  std::copy(std::begin(dims), std::end(dims), image.dim);
  std::copy(std::begin(strides), std::end(strides), image.stride);
  gpunn_tensor packed = image;
  const int64_t packed_strides[] = {60, 20, 5, 1};
  std::copy(std::begin(packed_strides), std::end(packed_strides), packed.stride);
  const gpunn_tensor* inputs[] = {&image};
  const gpunn_tensor* outputs[] = {&image};
  const gpunn_pool2d_attrs window{.struct_size = sizeof(gpunn_pool2d_attrs),
                                  .window = {1, 1},
                                  .stride = {1, 1},
                                  .pad = {0, 0},
                                  .count_padding = 0,
                                  .input_size = {0, 0}};
  gpunn_op_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.n_inputs = desc.n_outputs = 1;
  desc.inputs = inputs;
  desc.outputs = outputs;
  desc.attrs = &window;
  const auto reason = [&](int32_t op, bool takes) {
    desc.op = op;
    class OneKernel final : public HostDevice {
     public:
      OneKernel(int32_t op, bool takes) {
        add(op, {.query = [](const OpDesc&) { return Support::yes(); },
                 .create = {},
                 .name = {},
                 .half = false,
                 .channels_last = takes});
      }
    };
    return OneKernel(op, takes).choose(OpDesc(desc)).support.reason;
  };
  CHECK(reason(GPUNN_OP_MAX_POOL2D, false) == "its images must be packed row-major, not channels-last");
  CHECK(reason(GPUNN_OP_MAX_POOL2D, true).empty());
  CHECK(reason(GPUNN_OP_RELU, false).empty());
  outputs[0] = &packed;
  CHECK(reason(GPUNN_OP_MAX_POOL2D, true) == "its images must be all packed row-major or all channels-last");
  CHECK_THAT(reason(GPUNN_OP_RELU, true), Contains("must lie in their order"));
}

TEST_CASE(
    "a kernel of an elementwise op is asked about one number beside channels-last images, about more if it says so",
    "[api]") {
  // Packed, but for images.
  const auto tensor = [](std::vector<int64_t> shape) {
    gpunn_tensor made{};
    made.rank = static_cast<int32_t>(shape.size());
    int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      made.dim[i] = shape[i];
      made.stride[i] = stride;
      stride *= shape[i];
    }
    return made;
  };
  gpunn_tensor image = tensor({2, 3, 4, 5});
  const gpunn_tensor packed = image;
  const int64_t strides[] = {60, 1, 15, 3};
  std::copy(std::begin(strides), std::end(strides), image.stride);
  const auto reason = [&](const gpunn_tensor& other, bool takes) {
    const gpunn_tensor* inputs[] = {&image, &other};
    const gpunn_tensor* outputs[] = {&image};
    gpunn_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.op = GPUNN_OP_MUL;
    desc.n_inputs = 2;
    desc.n_outputs = 1;
    desc.inputs = inputs;
    desc.outputs = outputs;
    class OneKernel final : public HostDevice {
     public:
      explicit OneKernel(bool takes) {
        add(GPUNN_OP_MUL, {.query = [](const OpDesc&) { return Support::yes(); },
                           .create = {},
                           .name = {},
                           .half = false,
                           .channels_last = takes});
      }
    };
    return OneKernel(takes).choose(OpDesc(desc)).support.reason;
  };
  for (const auto& one : {tensor({}), tensor({1}), tensor({1, 1, 1, 1}), image}) CHECK(reason(one, false).empty());
  for (const auto& in_order : {tensor({3, 1, 1}), tensor({2, 3, 1, 1}), tensor({4, 5}), tensor({2, 1, 4, 5})}) {
    CHECK(reason(in_order, false) == "its images must be packed row-major, not channels-last");
    CHECK(reason(in_order, true).empty());
  }
  for (const auto& other : {packed, tensor({3, 4, 5}), tensor({3, 1, 5}), tensor({1, 3, 4, 1})}) {
    CHECK_THAT(reason(other, true), Contains("must lie in their order"));
  }
}

TEST_CASE("packed and strided tensors are told apart", "[api]") {
  gpunn_tensor tensor{};
  tensor.rank = 3;
  const int64_t dims[] = {2, 1, 4};
  const int64_t strides[] = {4, 99, 1};  // the stride of a dimension of 1 does not matter
  std::copy(std::begin(dims), std::end(dims), tensor.dim);
  std::copy(std::begin(strides), std::end(strides), tensor.stride);
  CHECK(element_count(tensor) == 8);
  CHECK(is_packed(tensor));
  tensor.stride[0] = 5;
  CHECK_FALSE(is_packed(tensor));
  tensor.rank = 0;
  CHECK(element_count(tensor) == 1);
  CHECK(is_packed(tensor));
}
