# Sets ONNX_PROTO_DIR to a folder with an onnx-ml.proto that knows IR version
# 10. Looked up in this order: the variable or environment variable
# ONNX_PROTO_DIR, the `onnx` package of the Python in use, and at last the
# package's wheel, fetched with pip into the build folder.

function(zero_onnx_proto_ok dir result)
  set(${result} FALSE PARENT_SCOPE)
  if(EXISTS "${dir}/onnx-ml.proto")
    file(STRINGS "${dir}/onnx-ml.proto" newer REGEX "IR_VERSION_2024_3_25" LIMIT_COUNT 1)
    if(newer)
      set(${result} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()

find_package(Python3 COMPONENTS Interpreter REQUIRED)
set(candidates "${ONNX_PROTO_DIR}" "$ENV{ONNX_PROTO_DIR}")
execute_process(
  COMMAND "${Python3_EXECUTABLE}" -c
    "import importlib.util as u; print(u.find_spec('onnx').submodule_search_locations[0])"
  OUTPUT_VARIABLE onnx_package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
list(APPEND candidates "${onnx_package}" "${CMAKE_CURRENT_BINARY_DIR}/wheel/onnx")

macro(zero_pick_onnx_proto)
  foreach(dir IN LISTS candidates)
    zero_onnx_proto_ok("${dir}" ok)
    if(ok)
      set(ONNX_PROTO_DIR "${dir}" CACHE PATH "Folder with onnx-ml.proto" FORCE)
      break()
    endif()
  endforeach()
endmacro()

zero_pick_onnx_proto()
if(NOT ok)
  message(STATUS "No onnx package for ${Python3_EXECUTABLE}: fetching its wheel for onnx-ml.proto")
  set(wheel "${CMAKE_CURRENT_BINARY_DIR}/wheel")
  execute_process(COMMAND "${Python3_EXECUTABLE}" -m pip download --quiet --no-deps
    --only-binary=:all: -d "${wheel}" onnx==1.23.2 ERROR_VARIABLE pip_error)
  file(GLOB wheels "${wheel}/onnx-*.whl")
  if(wheels)
    list(GET wheels 0 file)
    file(ARCHIVE_EXTRACT INPUT "${file}" DESTINATION "${wheel}" PATTERNS "onnx/onnx-ml.proto")
  endif()
  zero_pick_onnx_proto()
endif()
if(NOT ok)
  message(FATAL_ERROR "zero-import needs onnx-ml.proto (IR version 10 or newer): install the Python "
    "package onnx, or set ONNX_PROTO_DIR to a folder that has the file. ${pip_error}")
endif()
message(STATUS "Using ${ONNX_PROTO_DIR}/onnx-ml.proto")
