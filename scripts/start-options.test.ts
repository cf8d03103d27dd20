import { expect, test } from 'bun:test'
import { chooseAddress, findTrouble, parseStart } from './start-options.ts'

test('parseStart takes the port from the option, then from PORT, and the folder the caller stood in', () => {
  expect(parseStart([], {}, '/here')).toEqual({ isOk: true, workspace: '/here', port: undefined })
  const env = { PORT: '9000', INIT_CWD: '/there' }
  expect(parseStart([], env, '/here')).toEqual({ isOk: true, workspace: '/there', port: 9000 })
  expect(parseStart(['--port', '0'], env, '/here')).toMatchObject({ port: 0 })
  expect(parseStart(['--port=81'], env, '/here')).toMatchObject({ port: 81 })
})

test.each([
  [['--port'], {}],
  [['--port', '70000'], {}],
  [['--port', 'x'], {}],
  [['--other'], {}],
  [['--port', '1', 'more'], {}],
  [[], { PORT: '-1' }],
] as const)('parseStart refuses %j with %j', (argv, env) => {
  expect(parseStart(argv, env, '/').isOk).toBe(false)
})

test('chooseAddress goes elsewhere when the usual port is taken, but not when one was asked for', async () => {
  const taken = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  expect(await chooseAddress(taken.port)).toBeUndefined()
  expect(await chooseAddress(0)).toBe('127.0.0.1:0')
  const { port = 0 } = taken
  await taken.stop(true)
  expect(await chooseAddress(port)).toBe(`127.0.0.1:${port}`)
})

test('findTrouble shows errors and crash reports, and leaves the rest in the log', () => {
  expect(findTrouble('{"level":"info","event":"started"}')).toBeUndefined()
  expect(findTrouble('{"level":"error","event":"server_error","message":"x"}')).toBe(
    'sandboxd: server_error: x',
  )
  expect(findTrouble('sandboxd: cannot use workspace')).toBe('sandboxd: cannot use workspace')
  expect(findTrouble('')).toBeUndefined()
})
