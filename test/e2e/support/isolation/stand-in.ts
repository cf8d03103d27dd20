// Stand-in for sandboxd in isolation tests: runs shell commands from its socket, as the user.

import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { listen: { type: 'string', default: '' }, 'run-as': { type: 'string' } },
})
const [uid, gid] = values['run-as']?.split(':') ?? []
const launcher =
  uid === undefined
    ? []
    : [
        'setpriv',
        `--reuid=${uid}`,
        `--regid=${gid}`,
        '--clear-groups',
        '--inh-caps=-all',
        '--bounding-set=-all',
        '--',
      ]

/** Memory that this program allocates on request. */
const hoard: Uint8Array[] = []

Bun.serve({
  unix: values.listen.replace('unix:', ''),
  fetch: async (request, server) => {
    server.timeout(request, 0)
    const text = await request.text()
    if (new URL(request.url).pathname === '/hoard') {
      for (let taken = 0; taken < Number(text); taken += 1024 ** 2)
        hoard.push(new Uint8Array(1024 ** 2).fill(1))
      return new Response('took it')
    }
    const isOwn = new URL(request.url).pathname === '/own'
    const child = Bun.spawn([...(isOwn ? [] : launcher), 'bash', '-c', text], {
      cwd: '/workspace',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 20_000,
      killSignal: 'SIGKILL',
    })
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    return Response.json({ code: await child.exited, stdout, stderr })
  },
})
process.on('SIGTERM', () => process.exit(0))
process.stdout.write('ready\n')
