// Forms of browsers, and compressed bodies.
#include <string>
#include <vector>

#include <catch.hpp>

#include "serving/protocol/compression.hpp"
#include "serving/protocol/multipart.hpp"
#include "serving/protocol/service_error.hpp"

using namespace gpunn::serving;

namespace {

template <class Action>
int refused_with(const Action& action) {
  try {
    action();
  } catch (const ServiceError& error) {
    return error.status();
  }
  return 200;
}

}  // namespace

TEST_CASE("a form's parts are what a browser put in") {
  const std::string content("\r\n--almost\0\r\n", 13);
  const std::string body =
      "ignored\r\n--B\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n"
      "--B  \r\nContent-Type: IMAGE/png; x=y\r\ncontent-disposition: form-data; filename=\"a; \\\"b\\\".png\"; "
      "name=image\r\n\r\n" +
      content + "\r\n--B--\r\nignored";
  const std::vector<FormPart> parts = parse_multipart(body, "B");
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].name == "note");
  CHECK(parts[0].content == "hello");
  CHECK(parts[1].name == "image");
  CHECK(parts[1].file == "a; \"b\".png");
  CHECK(parts[1].content_type == "image/png");
  CHECK(parts[1].content == content);
}

TEST_CASE("a damaged form is refused") {
  const std::string part = "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n";
  CHECK(parse_multipart(part + "--B--", "B").size() == 1);
  for (const std::string& wrong : std::vector<std::string>{
           "", "no boundary", "--B", "--B\r\n", part, part + "--B", "--B\r\nno colon\r\n\r\nx\r\n--B--",
           "--B\r\nContent-Type: text/plain\r\n\r\nx\r\n--B--", "--Bx\r\n\r\n--B--",
           "--B\r\nContent-Disposition: form-data" + std::string(9000, ' ') + "\r\n\r\nx\r\n--B--"}) {
    INFO(wrong.substr(0, 60));
    CHECK(refused_with([&] { parse_multipart(wrong, "B"); }) == 400);
  }
  std::string many;
  for (int i = 0; i < 65; ++i) many += part;
  CHECK(refused_with([&] { parse_multipart(many + "--B--", "B"); }) == 400);
}

TEST_CASE("the boundary is that of a form alone") {
  CHECK(multipart_boundary("multipart/form-data; boundary=abc") == "abc");
  CHECK(multipart_boundary("Multipart/Form-Data; charset=x; boundary=\"a b\"") == "a b");
  CHECK(multipart_boundary("image/png").empty());
  CHECK(multipart_boundary("").empty());
  CHECK(refused_with([] { multipart_boundary("multipart/form-data"); }) == 400);
  CHECK(refused_with([] { multipart_boundary("multipart/form-data; boundary=" + std::string(71, 'x')); }) == 400);
}

TEST_CASE("a compressed body is what it was, within its bound") {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919 % 1000);
  for (const Coding coding : {Coding::gzip, Coding::deflate}) {
    const std::string packed = compress(text, coding);
    CHECK(packed.size() < text.size());
    CHECK(decompress(packed, text.size()) == text);
    CHECK(refused_with([&] { decompress(packed, text.size() - 1); }) == 413);
    CHECK(refused_with([&] { decompress(packed.substr(0, packed.size() - 1), text.size()); }) == 400);
    CHECK(refused_with([&] { decompress(packed + "x", text.size()); }) == 400);
    CHECK(decompress(compress("", coding), 0).empty());
  }
  const std::string bomb = compress(std::string(100'000'000, '\0'), Coding::gzip);
  CHECK(bomb.size() < 1'000'000);
  CHECK(refused_with([&] { decompress(bomb, 1 << 20); }) == 413);
  CHECK(refused_with([] { decompress("not compressed", 100); }) == 400);
  CHECK(refused_with([] { decompress("", 100); }) == 400);
}

TEST_CASE("codings are known by their names") {
  CHECK(coding_of("") == Coding::identity);
  CHECK(coding_of(" GZIP ") == Coding::gzip);
  CHECK(coding_of("deflate") == Coding::deflate);
  CHECK(refused_with([] { coding_of("br"); }) == 400);
  CHECK(accepted_coding("") == Coding::identity);
  CHECK(accepted_coding("br, deflate;q=0.5, gzip") == Coding::gzip);
  CHECK(accepted_coding("gzip;q=0, deflate") == Coding::deflate);
  CHECK(accepted_coding("br") == Coding::identity);
}
