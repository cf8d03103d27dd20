export { eventually, type EventuallyOptions, type Settled, WAIT_TIMEOUT_MS } from './eventually.ts'
export {
  type FaultProxy,
  type FaultProxyOptions,
  type NewConnections,
  openFaultProxy,
  type ProxyFaults,
  type ProxyStats,
} from './fault-proxy.ts'
export {
  burstBytes,
  type DirectionFaults,
  FaultQueue,
  type QueueStep,
  READ_AHEAD_BYTES,
} from './fault-queue.ts'
export { patternAt, type PatternMismatch, verifyPattern } from './pattern.ts'
export {
  connectPlain,
  type OutputMode,
  type PlainClient,
  type PlainClientOptions,
  type PlainClose,
  ReceivedStream,
  UpgradeRefused,
} from './plain-client.ts'
export {
  isAlive,
  type ProcessCounts,
  type ProcessEntry,
  type ProcessMemory,
  readDescendants,
  readProcessCounts,
  readProcessMemory,
  readProcessTable,
} from './process-counts.ts'
export type { DisconnectKind, Direction, ProxyConnection } from './proxy-connection.ts'
export { PtyClient, type PtyMessage, type PtyTarget } from './pty-client.ts'
export { TextClient } from './text-client.ts'
export {
  findPythonPeerProblem,
  type PythonPeerOptions,
  type PythonPeerResult,
  type PythonStream,
  runPythonPeer,
} from './python-peer.ts'
export { Random } from './random.ts'
export { openRawTcp, type RawTcp, type RawTcpOptions, type TcpEnd } from './raw-tcp.ts'
export {
  openRawWebSocket,
  openRawWebSocketOrThrow,
  type RawClose,
  type RawHandshake,
  type RawWebSocket,
  type RawWebSocketOptions,
  upgradeRequest,
  type UpgradeResponse,
} from './raw-websocket.ts'
export { simulate } from './simulator/simulation.ts'
export { rejectionOf } from './rejection.ts'
export {
  decodeClosePayload,
  encodeClosePayload,
  encodeFrame,
  type Frame,
  FrameParser,
  type FrameSpec,
  OPCODE,
} from './websocket-frame.ts'
