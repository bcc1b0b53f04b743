// The shapes that a backend for training is judged by.
#include <gpunn/bench.hpp>
#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>

#include "common/text.hpp"

namespace gpunn {

namespace {

// Squares; what a transformer and a classifier have that is none; transposes as the gradients of a linear layer.
std::vector<OpShape> gemm() {
  std::vector<OpShape> shapes;
  for (const char* size : {"512", "1024", "2048", "4096", "8192"}) {
    const std::string n = size;
    shapes.push_back({"matmul", n + "x" + n + "x" + n});
  }
  for (const char* shape : {"4096x1024x1024", "1024x4096x1024", "128x4096x4096", "4096x128x4096", "64x64x16384",
                            "2048x2048x2048,ta=1", "2048x2048x2048,tb=1", "1000x1000x1000", "1023x1025x1027"}) {
    shapes.push_back({"matmul", shape});
  }
  shapes.push_back({"matmul_bias_activation", "2048x2048x2048,tb=1"});
  // Of a vision transformer on images of 224x224, and of longer sequences.
  for (const char* shape : {"32,197,12,64", "4,1024,16,64", "4,1024,8,128"}) {
    for (const char* op : {"attention", "attention_backward"}) shapes.push_back({op, shape});
  }
  return shapes;
}

// The 3x3 convolutions of ResNet-18 on 32x32 images, those of few channels that small networks have, and what else a
// ResNet-50 is made of; each forward and both gradients.
std::vector<OpShape> convolutions() {
  std::vector<OpShape> shapes;
  for (const char* shape :
       {"128,64,32,32,64,3,3,pad=1", "128,128,16,16,128,3,3,pad=1", "128,256,8,8,256,3,3,pad=1",
        "128,512,4,4,512,3,3,pad=1", "512,6,12,12,16,5,5", "512,1,28,28,6,5,5,pad=2", "128,3,32,32,64,3,3,pad=1",
        "128,64,32,32,128,3,3,stride=2,pad=1", "32,256,14,14,64,1,1", "32,64,14,14,256,1,1"}) {
    for (const char* op : {"conv2d", "conv2d_backward_data", "conv2d_backward_filter"}) shapes.push_back({op, shape});
  }
  return shapes;
}

std::vector<OpShape> memory() {
  const char* const images = "128,64,32,32";
  return {{"copy", "33554432"},
          {"add", "33554432"},
          {"relu", "33554432"},
          {"relu_backward", "33554432"},
          {"bias_add", images},
          {"bias_backward", images},
          {"bias_activation_backward", images},
          {"batch_norm", images},
          {"batch_norm_backward", images},
          {"batch_norm_inference", images},
          {"max_pool2d", images},
          {"max_pool2d_backward", images},
          {"avg_pool2d", "128,512,4,4,window=4"},
          {"softmax", "8192,1000"},
          {"softmax_cross_entropy", "8192,1000"},
          {"softmax_cross_entropy_backward", "8192,1000"},
          {"layer_norm", "8192,1024"},
          {"layer_norm_backward", "8192,1024"},
          {"reduce", images},
          {"norm", "25000000"},
          {"transpose", "4096,4096"},
          {"dropout", "33554432"},
          {"sgd_update", "25000000"},
          {"adam_update", "25000000"},
          {"lars_update", "25000000"}};
}

// Those of LeNet-5 and of the perceptron 784-128-10 at a batch of 128: what a launch costs shows here.
std::vector<OpShape> small() {
  return {{"matmul_bias_activation", "128x128x784,tb=1"},
          {"matmul", "128x10x128,tb=1"},
          {"matmul", "128x784x128,ta=1"},
          {"matmul", "128x120x400,tb=1"},
          {"conv2d_bias_activation", "128,1,28,28,6,5,5,pad=2"},
          {"conv2d_bias_activation", "128,6,14,14,16,5,5"},
          {"conv2d_backward_data", "128,6,14,14,16,5,5"},
          {"conv2d_backward_filter", "128,6,14,14,16,5,5"},
          {"max_pool2d", "128,6,28,28"},
          {"max_pool2d_backward", "128,6,28,28"},
          {"softmax_cross_entropy", "128,10"},
          {"softmax_cross_entropy_backward", "128,10"},
          {"hinge_loss", "128,10"},
          {"huber_loss", "128,10"},
          {"mean_rows", "128"},
          {"sgd_update", "61706"},
          {"gather_normalize", "60000,1,28,28,batch=128"}};
}

}  // namespace

const std::vector<std::string>& bench_presets() {
  static const std::vector<std::string> names = {"gemm", "conv", "memory", "small", "all"};
  return names;
}

std::vector<OpShape> bench_preset(const std::string& name) {
  if (name == "gemm") return gemm();
  if (name == "conv") return convolutions();
  if (name == "memory") return memory();
  if (name == "small") return small();
  if (name != "all")
    throw Error("bench: no preset '" + name + "'" + advice_or_list(name, bench_presets(), ""), ExitCode::usage);
  std::vector<OpShape> shapes = gemm();
  for (const auto& more : {convolutions(), memory(), small()}) shapes.insert(shapes.end(), more.begin(), more.end());
  return shapes;
}

}  // namespace gpunn
