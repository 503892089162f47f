// What the shell reads of the server's answers.

export type SessionStatus = 'idle' | 'running' | 'waiting' | 'halted'

export interface SessionSummary {
  id: string
  root: string
  owner: string
  agent: string
  title: string
  status: SessionStatus
  opened_at: string
  updated_at: string
}

export interface AgentSummary {
  id: string
  name: string
  description: string
  status: string
}

// SignInWays is what GET /auth/options says to somebody who is nobody yet.
export interface SignInWays {
  oidc: boolean
  issuer?: string
}
