// Classifies images by a trained model: classify RUN IMAGE... The images are shared among four threads that all call
// one model, as the workers of a service do.
#include <gpunn/error.hpp>
#include <gpunn/model.hpp>
#include <gpunn/plugins.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string answer_for(const gpunn::Model& model, const char* file) {
  const gpunn::Field& input = model.info().fields.input();
  const std::vector<uint8_t> pixels = gpunn::read_image(file, input);
  gpunn::Shape shape = input.type.shape;  // [channels, height, width]
  shape.insert(shape.begin(), 1);         // one image
  const gpunn::ArrayView image{.name = input.name, .dtype = gpunn::DType::u8, .shape = shape, .data = pixels.data()};

  const gpunn::ClassProbability best = model.predict(image).front().classes.front();
  char text[64];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * best.probability);
  return std::string(file) + ": " + best.name + ", " + text;
}

int classify(const char* run, const std::vector<const char*>& files) {
  const gpunn::Model model = gpunn::Model::load(run, {.max_batch = 1});
  std::vector<std::string> answers(files.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      try {
        answers[i] = answer_for(model, files[i]);
      } catch (const gpunn::Error& error) {
        answers[i] = error.what();
        failed = true;
      }
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  for (const std::string& answer : answers) std::printf("%s\n", answer.c_str());
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: classify RUN IMAGE...\n", stderr);
    return 2;
  }
  int code = 0;
  try {
    code = classify(argv[1], {argv + 2, argv + argc});
  } catch (const gpunn::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = static_cast<int>(error.code());
  }
  gpunn::shutdown_plugins();
  return code;
}
