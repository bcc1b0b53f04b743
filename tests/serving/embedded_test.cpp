// The service in a program of its own.
#include <gpunn/error.hpp>
#include <gpunn/serving.hpp>
#include <gpunn/training.hpp>

#include <string>
#include <thread>
#include <vector>

#include <catch.hpp>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "data/images/image.hpp"
#include "data/segmentation/label_map.hpp"
#include "data/segmentation/run_lengths.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;

namespace {

// What a service on this machine answers to a request that ends its connection.
std::string answer_to(uint16_t port, const std::string& request) {
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(client, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    std::vector<char> part(4096);
    for (ssize_t bytes = 0; (bytes = ::recv(client, part.data(), part.size(), 0)) > 0;) {
      answer.append(part.data(), static_cast<std::size_t>(bytes));
    }
  }
  ::close(client);
  return answer;
}

std::string infer_request_text(const std::string& model) {
  const std::string json =
      R"({"inputs":[{"name":"image","shape":[1,1,28,28],"datatype":"UINT8","parameters":{"binary_data_size":784}}]})";
  const std::string body = json + std::string(784, '\7');
  return "POST /v2/models/" + model +
         "/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nInference-Header-Content-Length: " + std::to_string(json.size()) + "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("a program serves a model of its own to many clients, and stops") {
  const testing::TemporaryFolder folder;
  const RunResult run = train(testing::small_lenet(folder.path(), {{"training.max_steps", "2"}}));
  ServingOptions options{.port = 0, .network_threads = 2, .instances = 2};
  options.model = {.max_batch = 8};
  Service service(options);
  CHECK(service.models().empty());
  CHECK(answer_to(service.port(), infer_request_text("mine")).starts_with("HTTP/1.1 404"));
  service.put("mine", Model::load(run.run, {.max_batch = 8, .calls = 2}), 3);
  CHECK(service.models() == std::vector<std::string>{"mine:3"});
  CHECK(service.url() == "http://127.0.0.1:" + std::to_string(service.port()));
  std::vector<std::string> answers(24);
  std::vector<std::thread> clients;
  for (std::string& answer : answers) {
    clients.emplace_back([&] { answer = answer_to(service.port(), infer_request_text("mine")); });
  }
  service.put("mine", Model::load(run.run, {.max_batch = 8, .calls = 2}), 4);  // while they ask
  for (std::thread& client : clients) client.join();
  for (const std::string& answer : answers) {
    CHECK(answer.starts_with("HTTP/1.1 200"));
    CHECK(answer.find("\"probabilities\"") != std::string::npos);
  }
  CHECK_THROWS_AS(service.put("a/b", Model::load(run.run), 1), Error);
  CHECK(service.stop());
  CHECK(service.stop());
  CHECK(answer_to(service.port(), infer_request_text("mine")).empty());
}

TEST_CASE("classes of pixels are run lengths, or a PNG of the size of the image that was sent") {
  const testing::TemporaryFolder folder;
  const RunResult run = train(parse_experiment(
      "task: segmentation\n"
      "model: {layers: [conv2d: {filters: 8, kernel: 3, padding: 1}, relu, conv2d: {filters: 5, kernel: 1}]}\n"
      "data: {dataset: drawn_shapes, batch_size: 8, synthetic_train: 24, synthetic_test: 8}\n"
      "training: {max_steps: 2}\nbackend: cpu\nruns: " +
          folder.path().string() + "\n",
      "shapes.yaml"));
  Service service({.port = 0});
  service.put("shapes", Model::load(run.run), 1);
  data::Image image{.height = 90, .width = 70, .channels = 3, .values = {}};
  for (int64_t i = 0; i < image.height * image.width * 3; ++i) image.values.push_back(static_cast<uint8_t>(i * i / 97));
  const std::string file = data::encode_png(image);
  const auto ask = [&](const std::string& headers) {
    const std::string answer =
        answer_to(service.port(), "POST /v1/segment HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers +
                                      "Content-Length: " + std::to_string(file.size()) + "\r\n\r\n" + file);
    REQUIRE(answer.starts_with("HTTP/1.1 200"));
    return answer.substr(answer.find("\r\n\r\n") + 4);
  };
  const nlohmann::json document = nlohmann::json::parse(ask(""));
  CHECK(document.at("width") == 70);
  CHECK(document.at("height") == 90);
  const std::string png = ask("Accept: image/png\r\n");
  const data::LabelMap map =
      data::read_label_map({reinterpret_cast<const uint8_t*>(png.data()), png.size()}, "answer.png");
  REQUIRE(map.height == 90);
  REQUIRE(map.width == 70);
  std::vector<uint8_t> drawn(map.ids.size(), 255);
  CHECK(document.at("classes").size() > 1);
  for (const nlohmann::json& one : document.at("classes")) {
    CHECK(one.at("rle").at("size") == nlohmann::json({90, 70}));
    const data::RunLengths runs = data::runs_of_text(one.at("rle").at("counts").get<std::string>(), 90, 70);
    data::for_each_pixel(runs, [&](std::size_t pixel) { drawn[pixel] = one.at("class").get<uint8_t>(); });
  }
  CHECK(drawn == map.ids);
  CHECK(service.stop());
}

TEST_CASE("a service says what is wrong with its options") {
  CHECK_THROWS_WITH(Service({.models = {"x=/nowhere"}, .port = 0}), Contains("/nowhere"));
  CHECK_THROWS_WITH(Service({.port = 0, .instances = 0}), Contains("instances: expected 1 to"));
  CHECK_THROWS_WITH(Service({.port = 0, .private_key = "key.pem"}), Contains("one of the two is missing"));
  CHECK_THROWS_WITH(Service({.models = {"a:0=x"}, .port = 0}), Contains("whole number from 1"));
}
