import { SandwireError } from '@sandwire/protocol'
import { OpenTable, trackOpen } from '../beneath/system-calls.ts'
import { becomeFileUser } from './become-file-user.ts'
import type { FromThread, ThreadTypes, ToThread } from './thread-messages.ts'

declare const self: Worker

/** Sends a message from this thread; `moved` are its buffers that the receiver takes over, instead of copies. */
export type Send<T extends ThreadTypes> = (message: FromThread<T>, moved?: ArrayBuffer[]) => void

interface ThreadService<T extends ThreadTypes> {
  readonly request: (id: number, request: T['request']) => void
  readonly cancel?: (id: number) => void
  readonly taken?: (id: number) => void
}

/** Serves the requests that are sent to this worker thread, with the file access rights of the user. */
export function serveThread<T extends ThreadTypes>(
  open: (setUp: T['setUp'], send: Send<T>) => ThreadService<T>,
): void {
  const send: Send<T> = (message, moved = []) => self.postMessage(message, moved)
  let service: ThreadService<T> | undefined
  const setUp = (options: T['setUp']): void => {
    trackOpen(new OpenTable(options.table))
    if (options.user !== undefined && !becomeFileUser(options.user))
      send({ kind: 'unfit', message: 'it cannot act as the user' })
    else service = open(options, send)
  }
  self.addEventListener('message', (event: MessageEvent<ToThread<T>>) => {
    const message = event.data
    switch (message.kind) {
      case 'setUp':
        try {
          setUp(message.setUp)
        } catch (caught) {
          send({ kind: 'unfit', message: SandwireError.from(caught).message })
        }
        return
      case 'request':
        try {
          service?.request(message.id, message.request)
        } catch (caught) {
          const { code, message: text } = SandwireError.from(caught)
          send({ kind: 'refused', id: message.id, code, message: text })
        }
        return
      case 'cancel':
        service?.cancel?.(message.id)
        return
      case 'taken':
        service?.taken?.(message.id)
        return
    }
  })
}
