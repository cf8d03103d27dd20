import type { ScreenReply, ScreenRequest } from './screen-renderer.ts'
import { Screen } from './screen-terminal.ts'

declare const self: Worker

const screens = new Map<number, Screen>()

function reply(message: ScreenReply): void {
  self.postMessage(message)
}

self.addEventListener('message', (event: MessageEvent<ScreenRequest>) => {
  const request = event.data
  if (request.kind === 'open') {
    screens.set(request.screen, new Screen(request.cols, request.rows))
    return
  }
  const screen = screens.get(request.screen)
  if (screen === undefined) return
  switch (request.kind) {
    case 'resize':
      screen.resize(request.cols, request.rows)
      return
    case 'feed':
      screen.feed(request.bytes, () => reply({ screen: request.screen, id: request.id }))
      return
    case 'render':
      screen.draw((drawn) => reply({ screen: request.screen, id: request.id, drawn }))
      return
    case 'read':
      screen.read(request.range, (text) => reply({ screen: request.screen, id: request.id, text }))
      return
    case 'close':
      screen[Symbol.dispose]()
      screens.delete(request.screen)
      return
  }
})
