// The service in a program of its own.
#include <gpunn/error.hpp>
#include <gpunn/serving.hpp>
#include <gpunn/training.hpp>

#include <string>
#include <thread>
#include <vector>

#include <catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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

TEST_CASE("a service says what is wrong with its options") {
  CHECK_THROWS_WITH(Service({.models = {"x=/nowhere"}, .port = 0}), Contains("/nowhere"));
  CHECK_THROWS_WITH(Service({.port = 0, .instances = 0}), Contains("instances: expected 1 to"));
  CHECK_THROWS_WITH(Service({.port = 0, .private_key = "key.pem"}), Contains("one of the two is missing"));
  CHECK_THROWS_WITH(Service({.models = {"a:0=x"}, .port = 0}), Contains("whole number from 1"));
}
