# Wrappers that give every target of the project the same flags, include
# directories and export set (ZeroTargets), so that a folder's CMakeLists.txt
# says only what is in it.

add_library(zero_flags INTERFACE)
target_compile_options(zero_flags INTERFACE -Wall -Wextra -Werror
  -Wno-unused-parameter) # generated dialect headers have them
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # False alarms of GCC 12: about every std::optional of a vector, and about
  # the std::move that returns an llvm::Error as an llvm::Expected.
  target_compile_options(zero_flags INTERFACE -Wno-maybe-uninitialized -Wno-redundant-move)
endif()
if(ZERO_SANITIZER)
  target_compile_options(zero_flags INTERFACE -fsanitize=${ZERO_SANITIZER}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(zero_flags INTERFACE -fsanitize=${ZERO_SANITIZER})
endif()
if(ZERO_FUZZER)
  # What the compiler of the target itself adds finds new paths in all code.
  target_compile_options(zero_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

set(ZERO_INCLUDE_DIRS "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include"
  "${PROJECT_BINARY_DIR}" "${PROJECT_BINARY_DIR}/include")

# MLIR's headers are a system include (their warnings are not ours) and its
# code comes only from libMLIR.so: a second, static copy would register twice.
macro(zero_use_mlir)
  include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  add_library(zero_mlir INTERFACE)
  target_include_directories(zero_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_link_libraries(zero_mlir INTERFACE MLIR LLVM)
  # MLIR's headers lay out pass statistics by NDEBUG: a debug build has to agree
  # with the library, which is built without assertions.
  if(NOT LLVM_ENABLE_ASSERTIONS)
    target_compile_definitions(zero_mlir INTERFACE $<$<CONFIG:Debug>:NDEBUG>)
  endif()
  # TableGen's output leaves parameters unused.
  target_compile_options(zero_mlir INTERFACE -Wno-unused-parameter)
endmacro()

# zero_tablegen(<target> <file.td> [<out.inc> "<mlir-tblgen flags>"]...)
function(zero_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(outputs)
  while(ARGN)
    list(POP_FRONT ARGN out flags)
    separate_arguments(flags)
    mlir_tablegen(${out} ${flags} -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include)
  endwhile()
  add_public_tablegen_target(${target})
  set_property(GLOBAL APPEND PROPERTY ZERO_TABLEGEN_TARGETS ${target})
endfunction()

# add_zero_library(<name> <sources>... [DEPENDS ...] [LINK_LIBS ...] [NO_MLIR])
function(add_zero_library name)
  cmake_parse_arguments(ARG "NO_MLIR" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  foreach(dir ${ZERO_INCLUDE_DIRS})
    target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${dir}>)
  endforeach()
  target_include_directories(${name} PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/zero-opt>)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:zero_flags>)
  if(NOT ARG_NO_MLIR)
    target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:zero_mlir> $<INSTALL_INTERFACE:Zero::mlir>)
    if(NOT LLVM_ENABLE_RTTI)
      target_compile_options(${name} PRIVATE -fno-rtti)
    endif()
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  install(TARGETS ${name} EXPORT ZeroTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# add_zero_tool(<name> <sources>... [LINK_LIBS ...])
function(add_zero_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE zero_flags zero_mlir ${ARG_LINK_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# add_zero_unittest(<name> <sources>... [LINK_LIBS ...] [NO_MLIR])
# A GoogleTest executable; ctest sees each of its cases. Without NO_MLIR it is
# skipped in a build of the runtime alone.
function(add_zero_unittest name)
  cmake_parse_arguments(ARG "NO_MLIR" "" "LINK_LIBS" ${ARGN})
  if(NOT ARG_NO_MLIR AND NOT ZERO_BUILD_COMPILER)
    return()
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE ${ZERO_INCLUDE_DIRS})
  target_link_libraries(${name} PRIVATE zero_flags ${ARG_LINK_LIBS} GTest::gmock GTest::gtest_main)
  if(NOT ARG_NO_MLIR)
    target_link_libraries(${name} PRIVATE zero_mlir)
  endif()
  target_compile_definitions(${name} PRIVATE
    ZERO_TEST_MODELS="${PROJECT_SOURCE_DIR}/test/models")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300)
  add_dependencies(zero-unit-tests ${name})
endfunction()

# Installs headers (ours and the generated ones) and the package files, so that
# find_package(Zero) works out of tree; see examples/standalone-consumer.
function(zero_install_package)
  set(headers "${CMAKE_INSTALL_INCLUDEDIR}/zero-opt")
  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Zero")
  set(patterns FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc" PATTERN "CMakeFiles" EXCLUDE)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/dialects" DESTINATION "${headers}" ${patterns})
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/zero" DESTINATION "${headers}" ${patterns})
  if(ZERO_BUILD_COMPILER)
    install(DIRECTORY "${PROJECT_BINARY_DIR}/dialects" DESTINATION "${headers}" ${patterns})
    install(DIRECTORY "${PROJECT_BINARY_DIR}/include/zero" DESTINATION "${headers}" ${patterns})
  endif()
  include(CMakePackageConfigHelpers)
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ZeroConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/ZeroConfig.cmake" INSTALL_DESTINATION "${package}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/ZeroConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(EXPORT ZeroTargets NAMESPACE Zero:: DESTINATION "${package}")
  install(FILES "${PROJECT_BINARY_DIR}/ZeroConfig.cmake" "${PROJECT_BINARY_DIR}/ZeroConfigVersion.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/AddZero.cmake" DESTINATION "${package}")
endfunction()
