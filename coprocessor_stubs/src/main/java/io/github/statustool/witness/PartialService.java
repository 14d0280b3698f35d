package io.github.statustool.witness;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.security.AccessDeniedException;
import org.apache.hbase.thirdparty.com.google.protobuf.ServiceException;

/**
 * A service of HBase's RPC of which a few calls are answered for those who may, and all others refused, whatever calls
 * this version has.
 */
abstract class PartialService<T> implements InvocationHandler {
  private final Class<T> face;
  private final Access access;

  PartialService(Class<T> face, Access access) {
    this.face = face;
    this.access = access;
  }

  final T asService() {
    return face.cast(Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {face}, this));
  }

  /**
   * Answers a call.
   *
   * @return null if this call is none of those that are answered
   */
  abstract Object answer(String call, Object controller, Object request) throws ServiceException;

  @Override
  public final Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getDeclaringClass() == Object.class) {
      return ofObject(method, arguments);
    }
    try {
      access.check();
    } catch (AccessDeniedException error) {
      throw new ServiceException(error);
    }
    Object answer = answer(method.getName(), arguments[0], arguments[1]);
    if (answer == null) {
      throw new ServiceException(
          new DoNotRetryIOException(method.getName() + ": this is a witness of replication, no region server"));
    }
    return answer;
  }

  private Object ofObject(Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(this, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }
}
