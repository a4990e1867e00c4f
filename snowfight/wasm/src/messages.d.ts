export type ClientMessage =
  | { Request: { channel: number; kind: "Ping" | "Init" } }
  | { Action: Action };
export type Action =
  | { Break: { entity: number | null } }
  | { Throw: { target: Point } }
  | { Move: { direction: number } };
export type ServerMessage =
  | { Event: { time: number; kind: { Snapshot: Snapshot } | { GameOver: "Loser" | "Winner" } } }
  | { Response: { channel: number; kind: "Pong" | { Error: string } | { Connect: Connect } } };
export interface Connect { player: number; snapshot: Snapshot }
export interface Snapshot { entities: Entity[] }
export interface Entity { id: number; kind: "Dead" | { Object: GameObject } | { Player: Player } }
export interface GameObject {
  position: Point;
  kind: "Tree" | "Mushroom";
  durability: number | null;
  health: number;
  max_health: number;
}
export interface Player {
  position: Point;
  movement: number;
  holding: number | null;
  breaking: number | null;
  owner: number;
  health: number;
  max_health: number;
}
export interface Point { x: number; y: number; z: number }
