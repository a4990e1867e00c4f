/** Replication: the entities of a server, as this peer has them, and those of them that it owns. */

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";
export type { Replica } from "./replication/replica.js";
export { Replicas } from "./replication/replicas.js";
export type { RemoveReason, ReplicaEvent, ReplicasOptions, ReplicasStats } from "./replication/replicas.js";
export type { ClassName, EntityClasses, Field, FieldName, ReplicaOf } from "./replication/schema.js";
