/** A file on its way. */
export interface Sending {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Blob
  readonly signal?: AbortSignal
  /** Bytes that have left so far. */
  readonly onSent: (bytes: number) => void
}

/** Sends a file as `fetch` does, and tells how far it is, which `fetch` cannot. Throws as `fetch` does. */
export function sendFile(
  path: string,
  { method, headers, body, signal, onSent }: Sending,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest()
    sending.open(method, path)
    for (const [name, value] of Object.entries(headers)) sending.setRequestHeader(name, value)
    sending.upload.addEventListener('progress', ({ loaded }) => onSent(loaded))
    sending.addEventListener('load', () => {
      // An answer that may have no body must be made without one.
      const text = sending.responseText === '' ? null : sending.responseText
      resolve(new Response(text, { status: sending.status }))
    })
    sending.addEventListener('error', () => reject(new TypeError('The file could not be sent')))
    sending.addEventListener('abort', () => reject(new DOMException('Stopped', 'AbortError')))
    signal?.addEventListener('abort', () => sending.abort(), { once: true })
    if (signal?.aborted === true) reject(new DOMException('Stopped', 'AbortError'))
    else sending.send(body)
  })
}
