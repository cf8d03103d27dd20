import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { ServerWebSocket } from 'bun'
import { eventually } from '@sandwire/testing'
import type { Caller } from '../caller.ts'
import { EventFeed } from './event-feed.ts'
import { EventSocket } from './event-socket.ts'
import { JournalFile } from './journal-file.ts'

const EVENTS = 3_000
/** What control gets at once, and some that become due meanwhile. */
const AT_ONCE = 2_000

test.each(['control', 'viewer'] as const)(
  'paces events to control only, which parses them: %s',
  async (authority) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'event-socket-'))
    using journal = new JournalFile(path.join(folder, 'journal'))
    for (let count = 0; count < EVENTS; count += 1) journal.append({ atMs: 0, event: { type: 'stdout' } })
    let sent = 0
    const socket = {
      sendText: () => (sent += 1),
      getBufferedAmount: () => 0,
    } as unknown as ServerWebSocket<unknown>
    const viewer = new EventSocket(new EventFeed(journal, false), 0, { authority } as Caller)
    viewer.opened(socket)
    if (authority === 'viewer') expect(sent).toBe(EVENTS)
    else {
      expect(sent).toBeLessThan(AT_ONCE)
      const before = sent
      for (let count = 0; count < EVENTS; count += 1) viewer.partial('{}')
      expect(sent).toBeLessThan(AT_ONCE)
      await eventually(() => sent > before, { what: 'further events' })
    }
    viewer.closed()
    rmSync(folder, { recursive: true })
  },
)
