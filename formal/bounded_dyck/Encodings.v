(** The paper's encodings (20) and (21) are linearly dependent as soon as there are two types and two depths. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums.
Open Scope R_scope.

(** A token is open (2i) or closed (2i + 1) of type i; a state is a token and a depth. (20): one-hot of the token, one-hot
    of the depth; coordinates 0 .. 2k - 1 and 2k .. 2k + D. *)
Definition encoding20 (k : nat) (token depth i : nat) : R :=
  if Nat.ltb i (2 * k) then kron i token else kron i (2 * k + depth).

(** (21): one-hot of the token, cos and sin of arctan(d/(D + 2 - d)). *)
Definition angle (D depth : nat) : R := atan (INR depth / (INR D + 2 - INR depth)).
Definition encoding21 (k D : nat) (token depth i : nat) : R :=
  if Nat.ltb i (2 * k) then kron i token
  else if Nat.eqb i (2 * k) then cos (angle D depth) else sin (angle D depth).

(** Coefficients x of S states, a list of encodings: independent if only x = 0 gives the zero vector. *)
Definition independent (S W : nat) (e : nat -> nat -> R) : Prop :=
  forall x, (forall i, (i < W)%nat -> Sum S (fun s => x s * e s i) = 0) -> forall s, (s < S)%nat -> x s = 0.

(** The open brackets of the first k types at depths 1 .. D: state number i D + (d - 1). *)
Definition open_states (D : nat) (e : nat -> nat -> nat -> R) (s i : nat) : R := e (2 * (s / D))%nat (s mod D + 1)%nat i.

Lemma rectangle S W (e : nat -> nat -> R) a b c d :
  (a < S)%nat -> (b < S)%nat -> (c < S)%nat -> (d < S)%nat -> a <> b -> a <> c -> a <> d ->
  (forall i, (i < W)%nat -> e a i + e b i = e c i + e d i) -> ~ independent S W e.
Proof.
  intros La Lb Lc Ld Nb Nc Nd H Ind.
  pose proof (Ind (fun s => kron s a + kron s b - kron s c - kron s d)) as X. cbv beta in X.
  assert (Z : kron a a + kron a b - kron a c - kron a d = 0).
  { apply X; [|exact La]. intros i Li.
    rewrite (Sum_ext S _ (fun s => kron s a * e s i + kron s b * e s i - kron s c * e s i - kron s d * e s i))
      by (intros; ring).
    rewrite !Sum_minus, Sum_plus.
    rewrite (Sum_kron S a (fun s => e s i) La), (Sum_kron S b (fun s => e s i) Lb),
      (Sum_kron S c (fun s => e s i) Lc), (Sum_kron S d (fun s => e s i) Ld).
    rewrite (H i Li). ring. }
  rewrite kron_same, !kron_other in Z by assumption. lra.
Qed.

Lemma place D i d : (d < D)%nat -> ((i * D + d) / D = i)%nat /\ ((i * D + d) mod D = d)%nat.
Proof.
  intro L. split.
  - rewrite Nat.add_comm, Nat.div_add by lia. rewrite Nat.div_small by exact L. lia.
  - rewrite Nat.add_comm, Nat.mod_add by lia. now apply Nat.mod_small.
Qed.

(** @statement Bounded Dyck: Theorem 1, sufficiency
    @clause independent encodings
    @kind erratum
    @hypotheses any k >= 2 and D >= 2; (20): one-hot type and one-hot depth; (21): one-hot type and (cos
      theta_d, sin theta_d), theta_d = arctan(d/(D + 2 - d))
    @formula the encodings of the open brackets alone are linearly dependent, for (20) and for (21)
    @note Types stand as tokens, open i and closed i. The ranks 8 and 6 at k = 2, D = 4 are not part of it. *)
Theorem encodings_20_and_21_are_dependent :
  forall k D, (2 <= k)%nat -> (2 <= D)%nat ->
  ~ independent (k * D) (2 * k + D + 1) (open_states D (encoding20 k)) /\
  ~ independent (k * D) (2 * k + 2) (open_states D (encoding21 k D)).
Proof.
  intros k D Hk HD.
  assert (P0 : (0 * D + 0 < k * D)%nat) by nia. assert (P1 : (1 * D + 1 < k * D)%nat) by nia.
  assert (P2 : (0 * D + 1 < k * D)%nat) by nia. assert (P3 : (1 * D + 0 < k * D)%nat) by nia.
  pose proof (place D 0 0 ltac:(lia)) as [A0 B0]. pose proof (place D 1 1 ltac:(lia)) as [A1 B1].
  pose proof (place D 0 1 ltac:(lia)) as [A2 B2]. pose proof (place D 1 0 ltac:(lia)) as [A3 B3].
  split; apply (rectangle _ _ _ (0 * D + 0) (1 * D + 1) (0 * D + 1) (1 * D + 0)); try assumption; try lia;
    intros i Li; unfold open_states; rewrite A0, B0, A1, B1, A2, B2, A3, B3.
  - unfold encoding20. destruct (Nat.ltb i (2 * k)); ring.
  - unfold encoding21. destruct (Nat.ltb i (2 * k)); [ring|]. destruct (Nat.eqb i (2 * k)); ring.
Qed.
