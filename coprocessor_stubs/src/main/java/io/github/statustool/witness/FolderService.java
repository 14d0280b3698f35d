package io.github.statustool.witness;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ClientService;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.CoprocessorServiceCall;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.CoprocessorServiceRequest;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.CoprocessorServiceResponse;
import org.apache.hadoop.hbase.shaded.protobuf.generated.HBaseProtos.NameBytesPair;
import org.apache.hbase.thirdparty.com.google.protobuf.ByteString;
import org.apache.hbase.thirdparty.com.google.protobuf.ServiceException;

/**
 * Calls by which {@code run -m --witness HOST:PORT} copies the folder. They come as those to a region server's
 * coprocessor do, to the service {@code Witness}: {@code list} answers a line {@code NAME LENGTH} for each file, {@code
 * read} with {@code NAME OFFSET} a part of one. {@code prune} with the folder's id and
 * what {@link Settled} reads makes runs of it.
 */
final class FolderService extends PartialService<ClientService.BlockingInterface> {
  static final String NAME = "Witness";

  private final ArrivalStore store;

  FolderService(ArrivalStore store, Access access) {
    super(ClientService.BlockingInterface.class, access);
    this.store = store;
  }

  @Override
  Object answer(String call, Object controller, Object request) throws ServiceException {
    if (!call.equals("execRegionServerService")) {
      return null;
    }
    CoprocessorServiceRequest asked = (CoprocessorServiceRequest) request;
    try {
      return CoprocessorServiceResponse.newBuilder()
          .setRegion(asked.getRegion())
          .setValue(NameBytesPair.newBuilder().setName("").setValue(ByteString.copyFrom(answer(asked.getCall()))))
          .build();
    } catch (NoSuchFileException error) {
      throw new ServiceException(new FileNotFoundException(error.getFile()));
    } catch (IOException error) {
      throw new ServiceException(error);
    }
  }

  private byte[] answer(CoprocessorServiceCall call) throws IOException {
    String method = call.getServiceName() + "." + call.getMethodName();
    switch (method) {
      case NAME + ".list":
        return store.lengths().entrySet().stream()
            .map(file -> file.getKey() + " " + file.getValue() + "\n")
            .collect(Collectors.joining())
            .getBytes(StandardCharsets.UTF_8);
      case NAME + ".read":
        return read(call.getRequest().toStringUtf8().split(" "));
      case NAME + ".prune":
        return prune(call.getRequest().toStringUtf8());
      default:
        throw new DoNotRetryIOException(method + ": a witness has only the calls list, read and prune of " + NAME);
    }
  }

  private byte[] prune(String request) throws IOException {
    String[] parts = request.split(" ", 2);
    if (!parts[0].equals(store.id().toString())) {
      throw new DoNotRetryIOException("another witness has begun to answer here");
    }
    try {
      store.prune(Settled.of(parts[parts.length - 1]));
      return new byte[0];
    } catch (IllegalArgumentException error) {
      throw new DoNotRetryIOException("expected FOLDER_ID UNTIL_MS SENDER REGION...");
    }
  }

  private byte[] read(String[] words) throws IOException {
    try {
      return store.part(words[0], Long.parseLong(words[1]));
    } catch (IndexOutOfBoundsException | NumberFormatException error) {
      throw new DoNotRetryIOException("expected NAME OFFSET");
    }
  }
}
