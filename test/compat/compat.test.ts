import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { converse } from './converse.ts'
import { CHANGING } from './changing-goldens.ts'
import type { Chapter, Golden } from './golden.ts'
import { OF_CONTROL, REPOSITORY } from './knowing-goldens.ts'
import { openLocalMode, openSandboxd, openSandboxMode, type Place } from './place.ts'
import { CONVERSATIONS } from './pty-goldens.ts'
import { NOTHING, ODD, READING } from './reading-goldens.ts'
import { isGolden } from './template.ts'

setDefaultTimeout(120_000)

const PLACES = [
  ['WORKSPACE_MODE=local', openLocalMode],
  ['sandboxes', openSandboxMode],
  ['sandboxd by itself', openSandboxd],
] as const

/** The answer to a golden request, as it can be compared. */
async function ask(place: Place, { ask: line, body }: Golden): Promise<{ status: number; text: string }> {
  const [method = '', path = ''] = line.split(/ (.*)/)
  const init = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const headers = body === undefined ? {} : { 'content-type': 'application/json' }
  const response = await place.fetch(path, { method, headers, ...init })
  expect(response.headers.get('content-type')).toMatch(/^application\/json(;|$)/)
  return { status: response.status, text: await response.text() }
}

function inMode(golden: string, { mode }: Place): string {
  return golden.replaceAll('$MODE', mode ?? '').replaceAll('$SANDBOXED', String(mode === 'sandbox'))
}

describe.each([...PLACES])('the compat API with %s', (_, open) => {
  let place: Place
  beforeAll(async () => {
    place = await open()
    await place.run('true')
  })
  afterAll(() => place[Symbol.asyncDispose]())

  const read = (chapter: Chapter): void => {
    describe(chapter.about, () => {
      beforeAll(async () => {
        if (chapter.script !== undefined) await place.run(chapter.script)
      })
      for (const golden of chapter.goldens)
        test(`${golden.ask}${golden.body === undefined ? '' : ` ${JSON.stringify(golden.body)}`}`, async () => {
          const { status, text } = await ask(place, golden)
          const expected = inMode(golden.text, place)
          // Shown only when they differ, and then side by side.
          expect({ status, text: isGolden(text, expected) ? expected : text }).toEqual({
            status: golden.status,
            text: expected,
          })
        })
    })
  }
  for (const chapter of [NOTHING, READING, CHANGING, ODD, REPOSITORY]) read(chapter)
  if (open === openSandboxd) return
  read(OF_CONTROL)
  describe('a terminal', () => {
    for (const conversation of CONVERSATIONS)
      test(conversation.about, () =>
        converse(conversation, (query) => {
          if (place.openPty === undefined) throw new Error('It has no terminals')
          return place.openPty(query)
        }),
      )
    test('is listed among the sessions while it runs', async () => {
      const client = place.openPty?.({})
      await client?.name()
      const listed = await (await place.fetch('/api/sessions')).text()
      const one = '{"id":"$ID","type":"pty","alive":true,"clients":1,"history_count":$COUNT}'
      const many = listed.replace(/^\{"sessions":\[|\]\}$/g, '').split(/(?<=\}),/)
      expect(many.filter((each) => isGolden(each, one))).toHaveLength(1)
      await client?.leave()
    })
  })
})
