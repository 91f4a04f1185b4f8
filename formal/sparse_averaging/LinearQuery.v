(** A query that is linear in the multi-hot vector of the set: exact uniformity needs rank N - 1.

    A j i is what token j of the set gives to the score of token i; N tokens, sets of q of them. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
Require Import Arith.
From Formal.common Require Import Sums Sets.
Open Scope R_scope.

(** The form that equal scores on every set force (N > q >= 3): margins delta, shifts r, level kappa. *)
Definition form (q : R) (kappa : R) (delta r : nat -> R) (j i : nat) : R :=
  kron j i * delta i + r j + (kappa - delta i) / q.

(** Whatever the shifts: any two vectors that A sends to zero are multiples of each other. *)
Lemma two_kernel_vectors N q kappa delta r x x' : (0 < N)%nat -> (forall i, (i < N)%nat -> 0 < delta i) ->
  (forall j, (j < N)%nat -> Sum N (fun i => form q kappa delta r j i * x i) = 0) ->
  (forall j, (j < N)%nat -> Sum N (fun i => form q kappa delta r j i * x' i) = 0) ->
  exists c c', (c <> 0 \/ c' <> 0) /\ forall i, (i < N)%nat -> c * x i = c' * x' i.
Proof.
  intros PN Pd Hx Hx'.
  (* x_j delta_j + r_j s + t = 0, s the sum of x, t that of c_i x_i *)
  set (g := fun i => (kappa - delta i) / q).
  assert (Row : forall y, (forall j, (j < N)%nat -> Sum N (fun i => form q kappa delta r j i * y i) = 0) ->
    forall j, (j < N)%nat -> delta j * y j + r j * Sum N y + Sum N (fun i => g i * y i) = 0).
  { intros y Hy j Lj. rewrite <- (Hy j Lj).
    rewrite (Sum_ext N (fun i => form q kappa delta r j i * y i)
      (fun i => kron j i * (delta i * y i) + r j * y i + g i * y i)) by (intros; unfold form, g; ring).
    rewrite !Sum_plus, Sum_scal, (Sum_kron_r N j (fun i => delta i * y i) Lj). ring. }
  assert (Inv : 0 < Sum N (fun i => / delta i)).
  { apply Sum_all_pos; [exact PN|]. intros. now apply Rinv_0_lt_compat, Pd. }
  (* sums: s (1 + sum r/delta) + t sum 1/delta = 0 *)
  assert (Tie : forall y, (forall j, (j < N)%nat -> Sum N (fun i => form q kappa delta r j i * y i) = 0) ->
    Sum N y * (1 + Sum N (fun i => r i / delta i)) + Sum N (fun i => g i * y i) * Sum N (fun i => / delta i) = 0).
  { intros y Hy.
    assert (E : Sum N y = Sum N (fun i => - (Sum N y * (r i / delta i) + Sum N (fun i => g i * y i) * / delta i))).
    { apply Sum_ext. intros i Li. pose proof (Row y Hy i Li) as R. pose proof (Pd i Li).
      apply (Rmult_eq_reg_l (delta i)); [|lra].
      replace (delta i * - (Sum N y * (r i / delta i) + Sum N (fun i0 => g i0 * y i0) * / delta i))
        with (- (r i * Sum N y + Sum N (fun i0 => g i0 * y i0))) by (field; lra). lra. }
    rewrite Sum_opp, Sum_plus, !Sum_scal in E. lra. }
  assert (Zero : forall y, (forall j, (j < N)%nat -> Sum N (fun i => form q kappa delta r j i * y i) = 0) ->
    Sum N y = 0 -> forall i, (i < N)%nat -> y i = 0).
  { intros y Hy S i Li. pose proof (Tie y Hy) as T. rewrite S in T.
    assert (T0 : Sum N (fun i => g i * y i) = 0).
    { apply (Rmult_eq_reg_r (Sum N (fun i => / delta i))); lra. }
    pose proof (Row y Hy i Li) as R. rewrite S, T0 in R. pose proof (Pd i Li).
    apply (Rmult_eq_reg_l (delta i)); lra. }
  destruct (Req_dec (Sum N x) 0) as [Zx|Nx].
  - exists 1, 0. split; [left; lra|]. intros i Li. rewrite (Zero x Hx Zx i Li). ring.
  - exists (Sum N x'), (Sum N x). split; [now right|]. intros i Li.
    set (s := Sum N x) in *. set (s' := Sum N x').
    assert (Z : s' * x i - s * x' i = 0); [|lra].
    apply (Zero (fun i => s' * x i - s * x' i)); [| |exact Li].
    + intros j Lj. rewrite (Sum_ext N _ (fun i => s' * (form q kappa delta r j i * x i) - s * (form q kappa delta r j i * x' i)))
        by (intros; ring).
      rewrite Sum_minus, !Sum_scal, (Hx j Lj), (Hx' j Lj). ring.
    + rewrite Sum_minus, !Sum_scal. fold s s'. ring.
Qed.

(** What a query gives the tokens: the sum over its set y. Scores are exact where they are equal on every set of q tokens
    and smaller off it. *)
Definition score (N : nat) (A : nat -> nat -> R) (y : nat -> bool) (i : nat) : R :=
  Sum N (fun j => if y j then A j i else 0).
Definition exact_scores (N q : nat) (A : nat -> nat -> R) : Prop :=
  forall y, count N y = q -> forall i i', (i < N)%nat -> (i' < N)%nat -> y i = true ->
  if y i' then score N A y i' = score N A y i else score N A y i' < score N A y i.

Definition plus (y : nat -> bool) (p i : nat) : bool := orb (y i) (i =? p).

Lemma Sum_over_plus N y p f : (p < N)%nat -> y p = false ->
  Sum N (fun j => if plus y p j then f j else 0) = Sum N (fun j => if y j then f j else 0) + f p.
Proof.
  intros L Y. rewrite (Sum_ext N _ (fun j => (if y j then f j else 0) + kron j p * f j)).
  - rewrite Sum_plus. now rewrite (Sum_kron N p f L).
  - intros j _. unfold plus, kron. destruct (Nat.eqb_spec j p) as [E|D].
    + rewrite E, Y. simpl. ring.
    + rewrite Bool.orb_false_r. destruct (y j); ring.
Qed.

Lemma count_plus N y p : (p < N)%nat -> y p = false -> count N (plus y p) = S (count N y).
Proof.
  intros L Y. apply INR_eq. rewrite S_INR, <- !Sum_count. exact (Sum_over_plus N y p (fun _ => 1) L Y).
Qed.

Lemma plus_true y p i : y i = true -> plus y p i = true.
Proof. unfold plus. intros ->. reflexivity. Qed.
Lemma plus_same y p : plus y p p = true.
Proof. unfold plus. rewrite Nat.eqb_refl. apply Bool.orb_true_r. Qed.
Lemma plus_false y p i : y i = false -> i <> p -> plus y p i = false.
Proof. unfold plus. intros -> D. now apply Nat.eqb_neq in D. Qed.

Lemma without_true y p i : y i = true -> i <> p -> without y p i = true.
Proof. unfold without. intros -> D. apply Nat.eqb_neq in D. now rewrite D. Qed.
Lemma without_same y p : without y p p = false.
Proof. unfold without. rewrite Nat.eqb_refl. apply Bool.andb_false_r. Qed.
Lemma without_false y p i : y i = false -> without y p i = false.
Proof. unfold without. now intros ->. Qed.

Section Forced.
Variables (N q : nat) (A : nat -> nat -> R).
Hypotheses (Pq : (3 <= q)%nat) (Ln : (q < N)%nat) (H : exact_scores N q A).
Let all (_ : nat) : bool := true.

(** Outside of two tokens, the difference of their columns is constant. *)
Lemma exchange i k j j' : (i < N)%nat -> (k < N)%nat -> (j < N)%nat -> (j' < N)%nat ->
  i <> k -> j <> i -> j <> k -> j' <> i -> j' <> k -> A j i - A j k = A j' i - A j' k.
Proof.
  intros Li Lk Lj Lj' Dik Dji Djk Dji' Djk'. destruct (Nat.eq_dec j j') as [->|Djj]; [reflexivity|].
  set (rest := without (without (without (without all i) k) j) j').
  assert (C : count N rest = (N - 4)%nat).
  { unfold rest.
    pose proof (count_without N all i Li eq_refl).
    pose proof (count_without N (without all i) k Lk (without_true _ _ _ eq_refl (not_eq_sym Dik))).
    pose proof (count_without N (without (without all i) k) j Lj
      (without_true _ _ _ (without_true _ _ _ eq_refl Dji) Djk)).
    pose proof (count_without N (without (without (without all i) k) j) j' Lj'
      (without_true _ _ _ (without_true _ _ _ (without_true _ _ _ eq_refl Dji') Djk') (not_eq_sym Djj))).
    pose proof (count_all N) as CA. change (fun _ : nat => true) with all in CA. lia. }
  destruct (subset N rest (q - 3)) as [z [Cz Sub]]; [lia|].
  assert (Off : forall p, rest p = false -> z p = false).
  { intros p F. destruct (z p) eqn:E; [|reflexivity]. apply Sub in E. congruence. }
  assert (Zi : z i = false) by (apply Off; apply without_false; apply without_false; apply without_false; apply without_same).
  assert (Zk : z k = false) by (apply Off; apply without_false; apply without_false; apply without_same).
  assert (Zj : z j = false) by (apply Off; apply without_false; apply without_same).
  assert (Zj' : z j' = false) by (apply Off, without_same).
  assert (Both : forall p, (p < N)%nat -> z p = false -> p <> i -> p <> k ->
    score N A z i + A i i + A k i + A p i = score N A z k + A i k + A k k + A p k).
  { intros p Lp Zp Dpi Dpk. set (y := plus (plus (plus z i) k) p).
    assert (F1 : plus z i k = false) by (apply plus_false; [exact Zk|now apply not_eq_sym]).
    assert (F2 : plus (plus z i) k p = false) by (apply plus_false; [now apply plus_false|exact Dpk]).
    assert (Cy : count N y = q) by (unfold y; rewrite !count_plus, Cz by assumption; lia).
    assert (Yi : y i = true) by (unfold y; apply plus_true, plus_true, plus_same).
    assert (Yk : y k = true) by (unfold y; apply plus_true, plus_same).
    pose proof (H y Cy k i Lk Li Yk) as E. rewrite Yi in E. unfold score, y in E.
    rewrite !(Sum_over_plus N (plus (plus z i) k) p), !(Sum_over_plus N (plus z i) k), !(Sum_over_plus N z i) in E by assumption.
    exact E. }
  pose proof (Both j Lj Zj Dji Djk). pose proof (Both j' Lj' Zj' Dji' Djk'). lra.
Qed.

(** Columns up to a shift, rows up to a shift, off the diagonal. *)
Let aside (i : nat) : nat := if i =? 1 then 2%nat else 1%nat.
Let c (i : nat) : R := if i =? 0 then 0 else A (aside i) i - A (aside i) 0%nat.
Let r (j : nat) : R := if j =? 0 then A 0%nat 1%nat - c 1 else A j 0%nat.

Lemma off_diagonal j i : (j < N)%nat -> (i < N)%nat -> j <> i -> A j i = r j + c i.
Proof.
  intros Lj Li D.
  assert (Col : forall i j, (i < N)%nat -> (j < N)%nat -> i <> 0%nat -> j <> 0%nat -> j <> i -> A j i - A j 0%nat = c i).
  { intros a b La Lb Na Nb Dba. unfold c, aside. replace (a =? 0) with false by (symmetry; now apply Nat.eqb_neq).
    destruct (Nat.eqb_spec a 1) as [->|N1]; apply exchange; lia. }
  unfold r. destruct (Nat.eqb_spec j 0) as [->|Nj].
  - destruct (Nat.eq_dec i 1) as [->|N1]; [ring|].
    set (b := if i =? 2 then 3%nat else 2%nat).
    assert (Lb : (b < N)%nat /\ b <> 0%nat /\ b <> 1%nat /\ b <> i).
    { unfold b. destruct (Nat.eqb_spec i 2); lia. }
    destruct Lb as [Lb [B0 [B1 Bi]]].
    pose proof (exchange i 1 0 b Li ltac:(lia) ltac:(lia) Lb ltac:(lia) ltac:(lia) ltac:(lia) Bi B1) as E.
    pose proof (Col i b Li Lb ltac:(lia) B0 Bi). pose proof (Col 1%nat b ltac:(lia) Lb ltac:(lia) B0 B1). lra.
  - destruct (Nat.eq_dec i 0) as [->|Ni]; [unfold c; simpl; ring|].
    pose proof (Col i j Li Lj Ni Nj D). lra.
Qed.

Let delta (i : nat) : R := A i i - r i - c i.

Lemma score_is y i : (i < N)%nat ->
  score N A y i = Sum N (fun j => if y j then r j else 0) + INR (count N y) * c i + (if y i then delta i else 0).
Proof.
  intro Li. unfold score.
  rewrite (Sum_ext N _ (fun j => (if y j then r j else 0) + c i * (if y j then 1 else 0) + kron j i * (if y j then delta i else 0))).
  - rewrite !Sum_plus, Sum_scal, Sum_count, (Sum_kron N i (fun j => if y j then delta i else 0) Li). ring.
  - intros j Lj. unfold kron. destruct (Nat.eqb_spec j i) as [->|D].
    + unfold delta. destruct (y i); ring.
    + rewrite (off_diagonal j i Lj Li D). destruct (y j); ring.
Qed.

Lemma forced : exists kappa margins shifts, (forall i, (i < N)%nat -> 0 < margins i) /\
  forall j i, (j < N)%nat -> (i < N)%nat -> A j i = form (INR q) kappa margins shifts j i.
Proof.
  assert (Qp : 3 <= INR q) by (pose proof (le_INR 3 q Pq) as E; simpl in E; lra).
  assert (Level : forall i k, (i < N)%nat -> (k < N)%nat -> INR q * c i + delta i = INR q * c k + delta k).
  { intros i k Li Lk. destruct (Nat.eq_dec i k) as [->|D]; [reflexivity|].
    pose proof (count_without N all i Li eq_refl).
    pose proof (count_without N (without all i) k Lk (without_true _ _ _ eq_refl (not_eq_sym D))).
    pose proof (count_all N) as CA. change (fun _ : nat => true) with all in CA.
    destruct (subset N (without (without all i) k) (q - 2)) as [z [Cz Sub]]; [lia|].
    assert (Off : forall p, without (without all i) k p = false -> z p = false).
    { intros p F. destruct (z p) eqn:E; [|reflexivity]. apply Sub in E. congruence. }
    assert (Zi : z i = false) by (apply Off, without_false, without_same).
    assert (Zk : z k = false) by (apply Off, without_same).
    set (y := plus (plus z i) k).
    assert (Cy : count N y = q).
    { unfold y. rewrite !count_plus, Cz; [lia|exact Li|exact Zi|exact Lk|apply plus_false; [exact Zk|now apply not_eq_sym]]. }
    assert (Yi : y i = true) by (unfold y; apply plus_true, plus_same).
    assert (Yk : y k = true) by (unfold y; apply plus_same).
    pose proof (H y Cy k i Lk Li Yk) as E. rewrite Yi in E. rewrite !score_is, Yi, Yk, Cy in E by assumption. lra. }
  exists (INR q * c 0 + delta 0%nat), delta, r. split.
  - intros i Li. set (k := if i =? 0 then 1%nat else 0%nat).
    assert (Lk : (k < N)%nat /\ k <> i) by (unfold k; destruct (Nat.eqb_spec i 0); lia). destruct Lk as [Lk D].
    pose proof (count_without N all i Li eq_refl).
    pose proof (count_without N (without all i) k Lk (without_true _ _ _ eq_refl D)).
    pose proof (count_all N) as CA. change (fun _ : nat => true) with all in CA.
    destruct (subset N (without (without all i) k) (q - 1)) as [z [Cz Sub]]; [lia|].
    assert (Off : forall p, without (without all i) k p = false -> z p = false).
    { intros p F. destruct (z p) eqn:E; [|reflexivity]. apply Sub in E. congruence. }
    assert (Zi : z i = false) by (apply Off, without_false, without_same).
    assert (Zk : z k = false) by (apply Off, without_same).
    set (y := plus z k).
    assert (Cy : count N y = q) by (unfold y; rewrite count_plus, Cz by assumption; lia).
    assert (Yk : y k = true) by apply plus_same.
    assert (Yi : y i = false) by (unfold y; apply plus_false; [exact Zi|now apply not_eq_sym]).
    pose proof (H y Cy k i Lk Li Yk) as E. rewrite Yi in E. rewrite !score_is, Yi, Yk, Cy in E by assumption.
    pose proof (Level i k Li Lk). lra.
  - intros j i Lj Li. pose proof (Level i 0%nat Li ltac:(lia)) as E.
    assert (Ec : (INR q * c 0 + delta 0%nat - delta i) / INR q = c i) by (rewrite <- E; field; lra).
    unfold form. rewrite Ec. unfold kron. destruct (Nat.eqb_spec j i) as [->|D]; [unfold delta; ring|].
    rewrite (off_diagonal j i Lj Li D). ring.
Qed.
End Forced.

(** @statement Sparse averaging: Linear query
    @kind clause
    @hypotheses 3 <= q < N; scores of the set y are the sum over j in y of A_ji
    @formula if scores are equal on every set y of q tokens and smaller off it, then A_ji = (w_j . u_i) for vectors of m
      numbers needs m >= N - 1; and A = I - 1 1^T/N has such scores, with m = N - 1
    @note Rank A is the least such m. That equal scores force A_ji = delta_i [i = j] + r_j + (kappa - delta_i)/q with
      positive margins delta is a part of the proof. *)
Theorem linear_query :
  forall N q, (3 <= q)%nat -> (q < N)%nat ->
  (forall A m (w u : nat -> nat -> R), exact_scores N q A ->
     (forall j i, (j < N)%nat -> (i < N)%nat -> A j i = Sum m (fun e => w j e * u i e)) -> (N - 1 <= m)%nat) /\
  let A j i := kron j i - / INR N in
  exact_scores N q A /\
  exists w u, forall j i, (j < N)%nat -> (i < N)%nat -> A j i = Sum (N - 1) (fun e => w j e * u i e).
Proof.
  intros N q Pq Ln. split; [|split].
  - intros A m w u Hs Fac. destruct (le_lt_dec (N - 1) m) as [L|L]; [exact L|exfalso].
    destruct (forced N q A Pq Ln Hs) as [kappa [margins [shifts [Pd Form]]]].
    assert (Dies : forall x, (forall e, (e < m)%nat -> Sum N (fun i => u i e * x i) = 0) ->
      forall j, (j < N)%nat -> Sum N (fun i => A j i * x i) = 0).
    { intros x E j Lj.
      rewrite (Sum_ext N _ (fun i => Sum m (fun e => w j e * (u i e * x i))))
        by (intros i Li; rewrite (Fac j i Lj Li), <- Sum_scal_r; apply Sum_ext; intros; ring).
      rewrite Sum_swap. apply Sum_zero. intros e Le. rewrite Sum_scal, (E e Le). ring. }
    assert (Call : count N (fun _ => true) = N) by apply count_all.
    destruct (underdetermined m N (fun _ => true) (fun e i => u i e)) as [x [[p [Lp Np]] [_ E]]]; [lia|].
    destruct (underdetermined (S m) N (fun _ => true) (fun e i => if e <? m then u i e else kron i p)) as [x' [[p' [Lp' Np']] [_ E']]]; [lia|].
    assert (X0 : x' p = 0).
    { pose proof (E' m ltac:(lia)) as Q. cbv beta in Q. rewrite Nat.ltb_irrefl in Q. now rewrite (Sum_kron N p x' Lp) in Q. }
    assert (E'' : forall e, (e < m)%nat -> Sum N (fun i => u i e * x' i) = 0).
    { intros e Le. pose proof (E' e ltac:(lia)) as Q. cbv beta in Q. apply Nat.ltb_lt in Le. now rewrite Le in Q. }
    destruct (two_kernel_vectors N (INR q) kappa margins shifts x x') as [c [c' [NZ Par]]]; [lia|exact Pd| | |].
    + intros j Lj. rewrite <- (Dies x E j Lj). apply Sum_ext. intros i Li. f_equal. symmetry. exact (Form j i Lj Li).
    + intros j Lj. rewrite <- (Dies x' E'' j Lj). apply Sum_ext. intros i Li. f_equal. symmetry. exact (Form j i Lj Li).
    + pose proof (Par p Lp) as Q. rewrite X0 in Q.
      assert (Zc : c = 0) by (apply (Rmult_eq_reg_r (x p)); [lra|exact Np]).
      pose proof (Par p' Lp') as Q'. rewrite Zc in Q'.
      assert (c' = 0) by (apply (Rmult_eq_reg_r (x' p')); [lra|exact Np']). destruct NZ; auto.
  - intros y Cy i i' Li Li' Yi.
    assert (Sc : forall k, (k < N)%nat -> score N (fun j i => kron j i - / INR N) y k = (if y k then 1 else 0) - INR q * / INR N).
    { intros k Lk. unfold score.
      rewrite (Sum_ext N _ (fun j => kron j k * (if y j then 1 else 0) - / INR N * (if y j then 1 else 0)))
        by (intros j _; destruct (y j); ring).
      rewrite Sum_minus, Sum_scal, Sum_count, Cy, (Sum_kron N k (fun j => if y j then 1 else 0) Lk). ring. }
    rewrite !Sc, Yi by assumption. destruct (y i'); lra.
  - assert (PN : 0 < INR N) by (apply (lt_INR 0); lia).
    exists (fun j e => if j <? N - 1 then kron e j else -1), (fun i e => kron e i - / INR N).
    intros j i Lj Li. destruct (Nat.ltb_spec j (N - 1)) as [L|L].
    + now rewrite (Sum_kron (N - 1) j (fun e => kron e i - / INR N) L).
    + replace j with (N - 1)%nat by lia.
      rewrite Sum_scal, Sum_minus, Sum_const, minus_INR by lia. simpl (INR 1).
      destruct (Nat.eq_dec i (N - 1)) as [->|D].
      * rewrite kron_same, Sum_zero by (intros; apply kron_other; lia). field. lra.
      * rewrite kron_other by lia.
        rewrite (Sum_ext (N - 1) (fun e => kron e i) (fun e => kron e i * 1)), (Sum_kron (N - 1) i (fun _ => 1) ltac:(lia))
          by (intros; ring). field. lra.
Qed.
