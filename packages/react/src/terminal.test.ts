import { type ClientStatus, SandwireError } from '@sandwire/protocol'
import { describe, expect, test } from 'bun:test'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { Terminal, connectionProblem } from './terminal.tsx'

test('renders the same elements with and without a message, so that the terminal stays mounted', () => {
  const draw = (showsProblem: boolean) =>
    renderToStaticMarkup(
      createElement(Terminal, { url: 'https://sandwire.example', className: 'shell', showsProblem }),
    )
  expect(draw(false)).toBe(draw(true))
  expect(draw(true)).toMatch(/^<div class="shell"[^>]*><div[^>]*><\/div><\/div>$/)
})

/** The messages after each of these statuses. */
function tell(all: readonly ClientStatus[]): readonly (string | undefined)[] {
  let last: string | undefined
  return all.map((status) => (last = connectionProblem(status, last)))
}

describe('connectionProblem', () => {
  test('reports an error until connected, or for good', () => {
    const why = 'The server cannot be reached: no answer'
    expect(
      tell([
        { kind: 'connecting', attempt: 1 },
        { kind: 'reconnecting', attempt: 1, atMs: 0, why },
        { kind: 'connecting', attempt: 2 },
        { kind: 'failed', error: new SandwireError('link_lost', why) },
      ]),
    ).toEqual(['Connecting…', `${why}. Reconnecting…`, `${why}. Reconnecting…`, `Disconnected. ${why}.`])
  })

  test('reports nothing while there is something to see', () => {
    const exit = { type: 'exit', code: 0, signal: null, outputEnd: 0, truncated: false } as const
    expect(
      tell([
        { kind: 'connecting', attempt: 1 },
        { kind: 'attached', session: 's', role: 'driver' },
        { kind: 'exited', exit },
        { kind: 'detached' },
      ]).slice(1),
    ).toEqual([undefined, undefined, undefined])
  })
})
