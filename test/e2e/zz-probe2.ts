import { encodeFrame, openRawTcp, openRawWebSocketOrThrow, readProcessMemory, upgradeRequest } from '@sandwire/testing'
import { startSandboxd } from './support/sandboxd.ts'
const sandboxd = await startSandboxd()
const port = sandboxd.port
const A = `Authorization: Bearer ${sandboxd.secret}`
const base = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: c2FuZHdpcmUgcmF3IGtleQ==']
const H = (lines: string[], first = 'GET /attach?cmd=cat HTTP/1.1', body = '', host = `Host: 127.0.0.1:${port}`) => [first, host, A, ...lines].join('\r\n') + '\r\n\r\n' + body
const without = (name: string) => base.filter((l) => !l.startsWith(name))
const cases: [string, string][] = [
  ['good', H(base)],
  ['version 777', H([...without('Sec-WebSocket-Version'), 'Sec-WebSocket-Version: 777'])],
  ['version 8', H([...without('Sec-WebSocket-Version'), 'Sec-WebSocket-Version: 8'])],
  ['version 12', H([...without('Sec-WebSocket-Version'), 'Sec-WebSocket-Version: 12'])],
  ['version 13x', H([...without('Sec-WebSocket-Version'), 'Sec-WebSocket-Version: 13x'])],
  ['version 12, 13', H([...without('Sec-WebSocket-Version'), 'Sec-WebSocket-Version: 12, 13'])],
  ['no version', H(without('Sec-WebSocket-Version'))],
  ['no key', H(without('Sec-WebSocket-Key'))],
  ['empty key', H([...without('Sec-WebSocket-Key'), 'Sec-WebSocket-Key: '])],
  ['short key', H([...without('Sec-WebSocket-Key'), 'Sec-WebSocket-Key: abcd'])],
  ['not b64 key', H([...without('Sec-WebSocket-Key'), 'Sec-WebSocket-Key: !!!!!!!!!!!!!!!!!!!!!!=='])],
  ['long key', H([...without('Sec-WebSocket-Key'), 'Sec-WebSocket-Key: ' + 'A'.repeat(100)])],
  ['two keys', H([...base, 'Sec-WebSocket-Key: c2FuZHdpcmUgcmF3IGtlWQ=='])],
  ['no upgrade', H(without('Upgrade'))],
  ['upgrade h2c', H([...without('Upgrade'), 'Upgrade: h2c'])],
  ['upgrade websocket, h2c', H([...without('Upgrade'), 'Upgrade: websocket, h2c'])],
  ['upgrade h2c, websocket', H([...without('Upgrade'), 'Upgrade: h2c, websocket'])],
  ['upgrade WebSocket', H([...without('Upgrade'), 'Upgrade: WebSocket'])],
  ['no connection', H(without('Connection'))],
  ['connection close', H([...without('Connection'), 'Connection: close'])],
  ['connection keep-alive, Upgrade', H([...without('Connection'), 'Connection: keep-alive, Upgrade'])],
  ['HTTP/1.0', H(base, 'GET /attach?cmd=cat HTTP/1.0')],
  ['HTTP/2.0', H(base, 'GET /attach?cmd=cat HTTP/2.0')],
  ['h2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + '\0\0\0\x04\0\0\0\0\0'],
  ['POST', H([...base, 'Content-Length: 0'], 'POST /attach?cmd=cat HTTP/1.1')],
  ['HEAD', H(base, 'HEAD /attach?cmd=cat HTTP/1.1')],
  ['body CL', H([...base, 'Content-Length: 5'], undefined, 'hello')],
  ['body TE', H([...base, 'Transfer-Encoding: chunked'], undefined, '5\r\nhello\r\n0\r\n\r\n')],
  ['CL+TE', H([...base, 'Content-Length: 5', 'Transfer-Encoding: chunked'], undefined, '0\r\n\r\n')],
  ['CL 0', H([...base, 'Content-Length: 0'])],
  ['smuggled 2nd', H([...base, 'Content-Length: 0'], undefined, H(base))],
  ['sub v1', H([...base, 'Sec-WebSocket-Protocol: sandwire.v1'])],
  ['sub foo', H([...base, 'Sec-WebSocket-Protocol: foo'])],
  ['sub foo, v1', H([...base, 'Sec-WebSocket-Protocol: foo, sandwire.v1'])],
  ['sub v1,v1', H([...base, 'Sec-WebSocket-Protocol: sandwire.v1, sandwire.v1'])],
  ['sub 2 headers', H([...base, 'Sec-WebSocket-Protocol: foo', 'Sec-WebSocket-Protocol: sandwire.v1'])],
  ['sub V1 upper', H([...base, 'Sec-WebSocket-Protocol: SANDWIRE.V1'])],
  ['sub empty', H([...base, 'Sec-WebSocket-Protocol: '])],
  ['sub commas', H([...base, 'Sec-WebSocket-Protocol: ,,,'])],
  ['sub 1000', H([...base, 'Sec-WebSocket-Protocol: ' + Array.from({ length: 1000 }, (_, i) => 'p' + i).join(', ') + ', sandwire.v1'])],
  ['deflate', H([...base, 'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits'])],
  ['deflate many', H([...base, 'Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover, permessage-deflate, x-webkit-deflate-frame'])],
  ['ext garbage', H([...base, 'Sec-WebSocket-Extensions: ;;;="'])],
  ['10000 headers', H([...base, ...Array.from({ length: 10000 }, (_, i) => `X-${i}: a`)])],
  ['150 headers', H([...base, ...Array.from({ length: 150 }, (_, i) => `X-${i}: a`)])],
  ['60 headers', H([...base, ...Array.from({ length: 60 }, (_, i) => `X-${i}: a`)])],
  ['huge header 1MB', H([...base, 'X-A: ' + 'a'.repeat(1 << 20)])],
  ['header 10k', H([...base, 'X-A: ' + 'a'.repeat(10000)])],
  ['header 15k', H([...base, 'X-A: ' + 'a'.repeat(15000)])],
  ['header 17k', H([...base, 'X-A: ' + 'a'.repeat(17000)])],
  ['huge url', H(base, 'GET /attach?cmd=' + 'a'.repeat(1 << 20) + ' HTTP/1.1')],
  ['NUL in header', H([...base, 'X-A: a\0b'])],
  ['bare LF', H(base).replaceAll('\r\n', '\n')],
  ['space before colon', H([...base, 'X-A : b'])],
  ['folded', H([...base, 'X-A: b\r\n c'])],
  ['no host', [`GET /attach?cmd=cat HTTP/1.1`, A, ...base].join('\r\n') + '\r\n\r\n'],
  ['two hosts', H([...base, 'Host: evil.example'])],
  ['absolute uri', H(base, `GET http://127.0.0.1:${port}/attach?cmd=cat HTTP/1.1`)],
  ['absolute evil uri', H(base, `GET http://evil.example/attach?cmd=cat HTTP/1.1`)],
  ['two auths', H([...base, 'Authorization: Bearer wrong'])],
  ['origin', H([...base, 'Origin: https://evil.example'])],
  ['garbage', '\x16\x03\x01\0\xa5\x01\0\0\xa1\x03\x03' + 'x'.repeat(200)],
]
const only = process.argv[2]
for (const [name, text] of cases) {
  if (only && !name.includes(only)) continue
  const tcp = await openRawTcp({ port })
  let err = ''
  void tcp.write(Buffer.from(text, 'latin1')).catch((e: Error) => (err = e.message))
  let got = ''
  const t = performance.now()
  const end = await Promise.race([(async () => { for (let b = await tcp.read(); b; b = await tcp.read()) got += Buffer.from(b).toString('latin1'); return tcp.ended })(), Bun.sleep(250)])
  const heads = got.split('\r\n')
  console.log(name.padEnd(28), JSON.stringify(heads[0]), heads.filter((l) => /protocol|extens|allow|version/i.test(l)).join(' | '), end ?? 'OPEN', JSON.stringify(got.split('\r\n\r\n')[1]?.slice(0, 130)), (got.match(/HTTP\/1.1/g) ?? []).length, err)
  tcp.reset()
}
// ping flood without reading
const mem = () => Math.round(readProcessMemory(sandboxd.pid).rssBytes / 1024 / 1024)
console.log('rss', mem())
const ws = await openRawWebSocketOrThrow({ port, path: '/attach?cmd=cat', headers: sandboxd.headers })
ws.pause()
const pings = Buffer.concat(Array.from({ length: 8000 }, () => encodeFrame({ opcode: 9, payload: Buffer.alloc(125) })))
let sent = 0
const t0 = performance.now()
while (performance.now() - t0 < 4000) { const r = await Promise.race([ws.sendBytes(pings).then(() => 'ok', (e: Error) => e.message), Bun.sleep(1000).then(() => 'stuck')]); sent += pings.length; if (r !== 'ok') { console.log(r); break } }
console.log('sent MB', sent / 1e6, 'rss', mem(), await Promise.race([ws.closed, Bun.sleep(10)]))
ws.reset(); await Bun.sleep(500); console.log('after', mem(), (await (await sandboxd.fetch('/sessions')).json() as { sessions: unknown[] }).sessions.length)
await sandboxd.stop()
