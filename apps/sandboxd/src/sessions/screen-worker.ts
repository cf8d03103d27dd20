import type { ScreenReply, ScreenRequest } from './screen-protocol.ts'
import { Screen } from './screen-terminal.ts'

declare const self: Worker

const screens = new Map<string, Screen>()

function reply(message: ScreenReply): void {
  self.postMessage(message)
}

self.addEventListener('message', (event: MessageEvent<ScreenRequest>) => {
  const request = event.data
  if (request.kind === 'open') {
    screens.set(request.session, new Screen(request.cols, request.rows))
    return
  }
  const screen = screens.get(request.session)
  switch (request.kind) {
    case 'resize':
      screen?.resize(request.cols, request.rows)
      return
    case 'feed':
      if (screen === undefined) reply({ id: request.id })
      else screen.feed(request.bytes, () => reply({ id: request.id }))
      return
    case 'render':
      if (screen === undefined) reply({ id: request.id })
      else screen.draw((data) => reply({ id: request.id, data }))
      return
    case 'close':
      screen?.[Symbol.dispose]()
      screens.delete(request.session)
      return
  }
})
