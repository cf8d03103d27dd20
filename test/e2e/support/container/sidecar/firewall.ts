/** Egress of the network namespace that the two containers share. */
export interface FirewallPlan {
  /** Where workerd listens for intercepted connections. */
  readonly gateway: string
  readonly egressPort: number
  /** Where the sidecar receives intercepted connections and DNS queries. */
  readonly catchPort: number
  readonly namesPort: number
  /** Allows what is neither TCP nor DNS; workerd decides on every TCP connection. */
  readonly hasInternet: boolean
}

/** The rules as `iptables-restore` reads them. */
export function writeRules(plan: FirewallPlan): string {
  const workerd = `-p tcp -d ${plan.gateway} --dport ${plan.egressPort}`
  return [
    '*nat',
    ':OUTPUT ACCEPT [0:0]',
    '-A OUTPUT -o lo -j RETURN',
    `-A OUTPUT ${workerd} -j RETURN`,
    `-A OUTPUT -p udp --dport 53 -j REDIRECT --to-ports ${plan.namesPort}`,
    `-A OUTPUT -p tcp -j REDIRECT --to-ports ${plan.catchPort}`,
    'COMMIT',
    '*filter',
    ':OUTPUT DROP [0:0]',
    '-A OUTPUT -o lo -j ACCEPT',
    // Redirected connections.
    '-A OUTPUT -d 127.0.0.0/8 -j ACCEPT',
    // Replies to connections from outside.
    '-A OUTPUT -m conntrack --ctstate ESTABLISHED --ctdir REPLY -j ACCEPT',
    `-A OUTPUT ${workerd} -j ACCEPT`,
    ...(plan.hasInternet ? ['-A OUTPUT ! -p tcp -j ACCEPT'] : []),
    '-A OUTPUT -j REJECT',
    'COMMIT',
    '',
  ].join('\n')
}

/** Replaces all rules atomically. */
export function applyRules(plan: FirewallPlan): void {
  const child = Bun.spawnSync(['/usr/sbin/iptables-restore'], {
    stdin: Buffer.from(writeRules(plan)),
    stderr: 'pipe',
  })
  if (!child.success) throw new Error(`iptables-restore: ${child.stderr.toString()}`)
}
