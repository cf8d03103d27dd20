/** What the network namespace that the two containers share lets out. */
export interface FirewallPlan {
  /** Where workerd listens for what was caught. */
  readonly gateway: string
  readonly egressPort: number
  /** Where the sidecar takes caught connections and questions for names. */
  readonly catchPort: number
  readonly namesPort: number
  /** Lets out what is neither TCP nor a question for a name; workerd judges every TCP connection by itself. */
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
    // What was redirected.
    '-A OUTPUT -d 127.0.0.0/8 -j ACCEPT',
    // Answers to connections from outside.
    '-A OUTPUT -m conntrack --ctstate ESTABLISHED --ctdir REPLY -j ACCEPT',
    `-A OUTPUT ${workerd} -j ACCEPT`,
    ...(plan.hasInternet ? ['-A OUTPUT ! -p tcp -j ACCEPT'] : []),
    '-A OUTPUT -j REJECT',
    'COMMIT',
    '',
  ].join('\n')
}

/** Puts the rules in place of whatever was there, all at once. */
export function applyRules(plan: FirewallPlan): void {
  const child = Bun.spawnSync(['/usr/sbin/iptables-restore'], {
    stdin: Buffer.from(writeRules(plan)),
    stderr: 'pipe',
  })
  if (!child.success) throw new Error(`iptables-restore: ${child.stderr.toString()}`)
}
