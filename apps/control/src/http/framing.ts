import { SandwireError } from '@sandwire/protocol'
import { respondError } from './respond.ts'

/**
 * True if the end of a request's body is ambiguous, so that a proxy in front may see another end than workerd: RFC 9112, section
 * 6.1. workerd itself refuses other invalid lengths and transfer codings, and repeated ones.
 */
export function hasAmbiguousLength(headers: Headers): boolean {
  return headers.has('transfer-encoding') && headers.has('content-length')
}

/**
 * Refuses a request and closes its connection, whose next bytes a proxy may have meant as part of this request. workerd closes a
 * connection only when a response fails, so this one fails after its body.
 */
export function refuseAndClose(requestId: string): Response {
  const message = 'The request has both Content-Length and Transfer-Encoding'
  const response = respondError(new SandwireError('bad_request', message), requestId)
  const body: ReadableStream<Uint8Array> | null = response.body
  const reader = body?.getReader()
  const failing = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const read = await reader?.read()
      if (read?.value === undefined) controller.error(new Error('The connection is closed'))
      else controller.enqueue(read.value)
    },
  })
  return new Response(failing, response)
}
